#include "cli/parts/argument_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "cli/parts/case.h"
#include "cli/parts/convert.h"
#include "cli/parts/options.h"
#include "cli/parts/random.h"

namespace onepass::cli {
namespace {

[[noreturn]] void refuse(const LineArgument& argument, const std::string& what) {
  throw Error(Status::invalid("problem line, " + argument.name + ": \"" + argument.value + "\" " +
                              what + "; allowed: " + argument_values + "; write one of these"));
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    items.push_back(item);
    if (comma == std::string_view::npos) break;
    text = text.substr(comma + 1);
  }
  return items;
}

std::optional<DType> dtype_named(std::string_view text) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16,
                            DType::int64, DType::int32, DType::uint8, DType::boolean}) {
    if (text == name(dtype) || text == short_name(dtype)) return dtype;
  }
  return std::nullopt;
}

Array list_array(const LineArgument& argument) {
  const std::string_view text = argument.value;
  std::vector<double> reals;
  bool whole = true;
  for (const std::string_view item : split_list(text.substr(1, text.size() - 2))) {
    decltype(Argument::value) value;
    if (!literal_of("problem line, " + argument.name, item, value) ||
        std::holds_alternative<bool>(value)) {
      refuse(argument, "holds \"" + std::string(item) + "\", which is no number");
    }
    whole = whole && std::holds_alternative<std::int64_t>(value);
    reals.push_back(number_of(argument.name, item));
  }
  const std::int64_t shape[] = {static_cast<std::int64_t>(reals.size())};
  Array array = zeros(whole ? DType::int64 : DType::float32, shape);
  for (std::size_t i = 0; i < reals.size(); ++i) {
    store(array.view.dtype, array.view.data, static_cast<std::int64_t>(i), reals[i]);
  }
  return array;
}

// Floats are normal, integers 0 to s_kv, bools true half of the time.
Array made_up(DType dtype, std::span<const std::int64_t> shape, const ProblemLine& line,
              std::uint64_t seed) {
  Array array = zeros(dtype, shape);
  if (is_float(dtype)) {
    fill_normal(array.view, seed);
    return array;
  }
  Random random(seed);
  const std::int64_t most =
      dtype == DType::uint8 ? std::min<std::int64_t>(line.s_kv, 255) : line.s_kv;
  const std::int64_t count = dtype == DType::boolean ? 2 : most + 1;
  for (std::int64_t i = 0; i < array.view.elements(); ++i) {
    store(dtype, array.view.data, i, static_cast<double>(random.below(count)));
  }
  return array;
}

Array typed_array(const LineArgument& argument, const ProblemLine& line, std::uint64_t seed) {
  const std::string_view text = argument.value;
  const std::size_t open = text.find('[');
  const std::optional<DType> dtype = dtype_named(text.substr(0, open));
  if (!dtype) refuse(argument, "does not begin with a dtype");
  const std::pair<std::string_view, std::int64_t> names[] = {
      {"b", line.b}, {"h", line.h_q}, {"h_kv", line.h_kv}, {"s_q", line.s_q}, {"s_kv", line.s_kv}};
  std::vector<std::int64_t> shape;
  for (const std::string_view item : split_list(text.substr(open + 1, text.size() - open - 2))) {
    const auto* named = std::find_if(std::begin(names), std::end(names),
                                     [item](const auto& entry) { return entry.first == item; });
    decltype(Argument::value) value;
    const bool literal = literal_of("problem line, " + argument.name, item, value);
    const auto* number = literal ? std::get_if<std::int64_t>(&value) : nullptr;
    if (named == std::end(names) && (number == nullptr || *number < 0 || *number > 1LL << 40)) {
      refuse(argument, "has the dim \"" + std::string(item) + "\", which is none");
    }
    shape.push_back(named != std::end(names) ? named->second : *number);
  }
  if (shape.size() > max_rank) refuse(argument, "has more than 4 dims");
  return made_up(*dtype, shape, line, seed);
}

// Ids that rise along each sequence, with ends of documents where the seed puts them.
Array documents(const LineArgument& argument, const ProblemLine& line, std::uint64_t seed) {
  const std::string_view text = argument.value;
  const std::string_view count_text = text.substr(10, text.size() - 11);
  const std::int64_t count =
      integer_of("problem line, " + argument.name + ", documents", count_text, 1, 1 << 20);
  const std::int64_t positions = std::max(line.s_q, line.s_kv);
  const std::int64_t shape[] = {line.b, positions};
  Array ids = zeros(DType::int32, shape);
  Random random(seed);
  for (std::int64_t b = 0; b < line.b && positions > 0; ++b) {
    auto* row = ids.data<std::int32_t>() + b * positions;
    for (std::int64_t document = 1; document < count; ++document) ++row[random.below(positions)];
    for (std::int64_t i = 1; i < positions; ++i) row[i] += row[i - 1];
  }
  return ids;
}

Array lengths(const ProblemLine& line, std::uint64_t seed) {
  const std::int64_t shape[] = {line.b};
  Array array = zeros(DType::int64, shape);
  Random random(seed);
  for (std::int64_t b = 0; b < line.b; ++b) {
    const std::int64_t cut = b == 0 ? 0 : random.below(line.s_kv - line.s_kv / 4 + 1);
    store(DType::int64, array.view.data, b, static_cast<double>(line.s_kv - cut));
  }
  return array;
}

// Press, Smith, Lewis 2022: slopes fall from 2^(-8/h) to 2^-8.
Array alibi_slopes(const ProblemLine& line) {
  const std::int64_t shape[] = {line.h_q};
  Array slopes = zeros(DType::float32, shape);
  for (std::int64_t h = 0; h < line.h_q; ++h) {
    store(DType::float32, slopes.view.data, h,
          std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(line.h_q)));
  }
  return slopes;
}

}  // namespace

decltype(Argument::value) argument_value(const LineArgument& argument, const ProblemLine& line,
                                         std::uint64_t seed, std::vector<Array>& arrays) {
  const std::string_view text = argument.value;
  decltype(Argument::value) value;
  if (literal_of("problem line, " + argument.name, text, value)) return value;
  if (text.starts_with('[') && text.ends_with(']')) {
    arrays.push_back(list_array(argument));
  } else if (text.find('[') != std::string_view::npos && text.ends_with(']')) {
    arrays.push_back(typed_array(argument, line, seed));
  } else if (text.starts_with("documents(") && text.ends_with(')')) {
    arrays.push_back(documents(argument, line, seed));
  } else if (text == "lengths") {
    arrays.push_back(lengths(line, seed));
  } else if (text == "alibi") {
    arrays.push_back(alibi_slopes(line));
  } else if (text == "random") {
    const std::int64_t shape[] = {1, line.h_q, line.s_q, line.s_kv};
    arrays.push_back(made_up(DType::float32, shape, line, seed));
  } else {
    refuse(argument, "is no value");
  }
  return arrays.back().view;
}

}  // namespace onepass::cli
