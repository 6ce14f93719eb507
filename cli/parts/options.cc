#include "cli/parts/options.h"

#include <charconv>
#include <cstdio>
#include <optional>

#include "core/problem_line.h"
#include "onepass/exec.h"

namespace onepass::cli {
namespace {

template <class T>
bool reads_as(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// A number by its spelling, but an integer beyond int64 or a number beyond float64.
bool is_too_large(std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool digits_only = text.find_first_not_of("-0123456789") == std::string_view::npos;
  return end == text.data() + text.size() &&
         (error == std::errc::result_out_of_range || (digits_only && error == std::errc()));
}

[[noreturn]] void refuse(std::string_view argument, std::string_view found,
                         const std::string& allowed) {
  throw Error(Status::invalid(std::string(argument) + ": \"" + std::string(found) + "\"; " +
                              allowed + "; write one of these"));
}

}  // namespace

void require(const Status& status) {
  if (!status.ok()) throw Error(status);
}

std::int64_t integer_of(std::string_view argument, std::string_view text, std::int64_t smallest,
                        std::int64_t largest) {
  std::int64_t number = 0;
  if (reads_as(text, number) && number >= smallest && number <= largest) return number;
  refuse(argument, text,
         "integers from " + std::to_string(smallest) + " to " + std::to_string(largest) +
             " are allowed");
}

int threads_of(std::string_view argument, std::string_view text) {
  return static_cast<int>(integer_of(argument, text, 0, max_threads));
}

std::uint64_t seed_of(std::string_view argument, std::string_view text) {
  std::uint64_t seed = 0;
  if (reads_as(text, seed)) return seed;
  refuse(argument, text, "integers from 0 to 2^64 - 1 are allowed");
}

double number_of(std::string_view argument, std::string_view text) {
  double number = 0.0;
  if (reads_as(text, number)) return number;
  refuse(argument, text, "numbers that fit float64, such as 0.125, are allowed");
}

double number_of(std::string_view argument, std::string_view text, double smallest,
                 double largest) {
  double number = 0.0;
  if (reads_as(text, number) && number >= smallest && number <= largest) return number;
  char allowed[80];
  std::snprintf(allowed, sizeof allowed, "numbers from %g to %g are allowed", smallest, largest);
  refuse(argument, text, allowed);
}

DType float_dtype_of(std::string_view argument, std::string_view text) {
  if (const std::optional<DType> dtype = float_dtype(text)) return *dtype;
  refuse(argument, text, "float64, float32, bfloat16 and float16 are allowed");
}

Device device_of(std::string_view argument, std::string_view text) {
  if (const std::optional<Device> device = onepass::device_of(text)) return *device;
  refuse(argument, text, "cpu, cuda and a number after it as in cuda:1 are allowed");
}

Align align_of(std::string_view argument, std::string_view text) {
  if (text == "bottom_right") return Align::bottom_right;
  if (text == "top_left") return Align::top_left;
  refuse(argument, text, "bottom_right and top_left are allowed");
}

bool literal_of(std::string_view argument, std::string_view text,
                decltype(Argument::value)& value) {
  std::int64_t integer = 0;
  double number = 0.0;
  if (text == "true" || text == "false") return value = text == "true", true;
  if (reads_as(text, integer)) return value = integer, true;
  const bool digits_only = text.find_first_not_of("-0123456789") == std::string_view::npos;
  if (!digits_only && reads_as(text, number)) return value = number, true;
  if (is_too_large(text)) {
    refuse(argument, text, "integers that fit int64 and numbers that fit float64 are allowed");
  }
  return false;
}

}  // namespace onepass::cli
