// What command-line words mean. Each throws Error with a message that names the argument.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "onepass/attention.h"

namespace onepass::cli {

/// The value, or its Status thrown as Error.
template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw Error(result.status());
  return std::move(result.value());
}
/// The same, with the argument's name put first.
template <class T>
T value_of(std::string_view argument, Result<T> result) {
  if (result.ok()) return std::move(result.value());
  throw Error({result.status().code, std::string(argument) + ": " + result.status().message});
}
void require(const Status& status);

std::int64_t integer_of(std::string_view argument, std::string_view text, std::int64_t smallest,
                        std::int64_t largest);
/// 0 to max_threads.
int threads_of(std::string_view argument, std::string_view text);
/// 0 to 2^64 - 1.
std::uint64_t seed_of(std::string_view argument, std::string_view text);
double number_of(std::string_view argument, std::string_view text);
/// The same within [smallest, largest], so never NaN.
double number_of(std::string_view argument, std::string_view text, double smallest, double largest);
/// float64, float32, bfloat16, float16 or f64, f32, bf16, f16.
DType float_dtype_of(std::string_view argument, std::string_view text);
/// cpu, cuda or cuda:1.
Device device_of(std::string_view argument, std::string_view text);
/// bottom_right or top_left, spelt as in Python and in problem lines.
Align align_of(std::string_view argument, std::string_view text);
/// true, false, an integer or a number; false where the text is none of these. Throws Error where
/// it is a number that fits neither int64 nor float64.
bool literal_of(std::string_view argument, std::string_view text, decltype(Argument::value)& value);

}  // namespace onepass::cli
