#include "core/problem_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace onepass {
namespace {

// Sizes beyond this are typing errors, and products of a few of them still fit int64.
constexpr std::int64_t largest_size = std::int64_t{1} << 40;

constexpr std::array<std::string_view, 26> fields{
    "b",     "h",       "s",       "d",      "out",    "mask",   "score", "definitions", "scale",
    "align", "q_start", "k_start", "q_lens", "k_lens", "k_used", "page",  "new",         "sink",
    "lse",   "dlse",    "dropout", "seed",   "offset", "row0",   "col0",  "device"};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

struct Word {
  std::size_t column = 0;  // 0-based
  std::string_view name;   // empty for a word without `=`
  std::string_view value;  // quotes taken off
};

Status error_at(std::size_t column, const std::string& message) {
  return Status::invalid("problem line, column " + std::to_string(column + 1) + ": " + message);
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

// Where the unquoted value that starts at `begin` ends: at a blank outside brackets; npos where a
// bracket stays open.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
  int depth = 0;
  std::size_t at = begin;
  for (; at < text.size() && (depth > 0 || !is_blank(text[at])); ++at) {
    if (text[at] == '(' || text[at] == '[') ++depth;
    if (text[at] == ')' || text[at] == ']') --depth;
  }
  return depth > 0 ? std::string_view::npos : at;
}

Result<std::vector<Word>> split(std::string_view text) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) return words;
    Word word{.column = at, .name = {}, .value = {}};
    std::size_t equals = at;
    while (equals < text.size() && text[equals] != '=' && !is_blank(text[equals])) ++equals;
    if (equals == text.size() || text[equals] != '=') {
      word.value = text.substr(at, equals - at);
      at = equals;
      words.push_back(word);
      continue;
    }
    word.name = text.substr(at, equals - at);
    const std::size_t begin = equals + 1;
    if (begin < text.size() && (text[begin] == '"' || text[begin] == '\'')) {
      const std::size_t close = text.find(text[begin], begin + 1);
      if (close == std::string_view::npos) {
        return error_at(begin,
                        "this quote is not closed; a value ends with the quote it began "
                        "with; close it");
      }
      word.value = text.substr(begin + 1, close - begin - 1);
      at = close + 1;
      if (at < text.size() && !is_blank(text[at])) {
        return error_at(at, quoted(text.substr(at, 1)) +
                                " follows a closing quote; a blank is expected there; put one");
      }
    } else {
      at = end_of_value(text, begin);
      if (at == std::string_view::npos) {
        return error_at(begin,
                        "a bracket of this value is not closed; brackets come in pairs; "
                        "close it or quote the value");
      }
      word.value = text.substr(begin, at - begin);
      const std::size_t quote = word.value.find_first_of("\"'");
      if (quote != std::string_view::npos) {
        return error_at(begin + quote,
                        "a quote inside a value; quotes stand around a whole value; move it");
      }
    }
    words.push_back(word);
  }
}

template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Status read_sizes(const Word& word, std::int64_t& first, std::int64_t& second) {
  const std::size_t slash = word.value.find('/');
  const std::string_view left = word.value.substr(0, slash);
  const std::string_view right =
      slash == std::string_view::npos ? left : word.value.substr(slash + 1);
  if (!read_number(left, first) || !read_number(right, second) || std::min(first, second) < 0 ||
      std::max(first, second) > largest_size) {
    return error_at(word.column, std::string(word.name) + " is " + quoted(word.value) +
                                     "; one size or two as in 32/8, each from 0 to 2^40, is "
                                     "allowed; write a number");
  }
  return {};
}

Status read_dtype(const Word& word, DType& dtype) {
  if (const std::optional<DType> known = float_dtype(word.value)) {
    dtype = *known;
    return {};
  }
  return error_at(word.column, quoted(word.value) +
                                   " stands where a dtype is expected; f64, f32, bf16 and f16 are "
                                   "allowed; name one");
}

Status read_start(const Word& word, LineStart& start) {
  std::string_view text = word.value;
  if (text == "int64[b]" || text == "int32[b]") {
    start = {true, {}, text == "int64[b]" ? DType::int64 : DType::int32};
    return {};
  }
  start.per_sequence = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (start.per_sequence) text = text.substr(1, text.size() - 2);
  while (true) {
    std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && is_blank(item.front())) item.remove_prefix(1);
    while (!item.empty() && is_blank(item.back())) item.remove_suffix(1);
    std::int64_t number = 0;
    if (!read_number(item, number) || (comma != std::string_view::npos && !start.per_sequence)) {
      return error_at(word.column, std::string(word.name) + " is " + quoted(word.value) +
                                       "; an integer or one per sequence as in [0,64] is allowed; "
                                       "write one");
    }
    start.numbers.push_back(number);
    if (comma == std::string_view::npos) return {};
    text = text.substr(comma + 1);
  }
}

Status read_lengths(const Word& word, LineStart& lengths) {
  if (Status s = read_start(word, lengths); !s.ok()) return s;
  const bool wrong = !lengths.per_sequence ||
                     std::any_of(lengths.numbers.begin(), lengths.numbers.end(),
                                 [](std::int64_t n) { return n < 0 || n > largest_size; });
  if (!wrong) return {};
  return error_at(word.column, std::string(word.name) + " is " + quoted(word.value) +
                                   "; a length for each sequence as in [5,0,7], or int32[b], is "
                                   "allowed; write one of them");
}

Status read_count(const Word& word, std::int64_t& count) {
  if (read_number(word.value, count) && count >= 0 && count <= largest_size) return {};
  return error_at(word.column, std::string(word.name) + " is " + quoted(word.value) +
                                   "; a number from 0 on is allowed; write one");
}

// A word that must be one of a few.
Result<std::size_t> choose(const Word& word, std::span<const std::string_view> choices) {
  std::string allowed;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (word.value == choices[i]) return i;
    allowed += (i == 0 ? "" : ", ") + std::string(choices[i]);
  }
  return error_at(word.column, std::string(word.name) + " is " + quoted(word.value) + "; " +
                                   allowed + " are allowed; name one or leave it out");
}

Status read_choice(const Word& word, ProblemLine& line) {
  static constexpr std::array<std::string_view, 2> corners{"bottom_right", "top_left"};
  static constexpr std::array<std::string_view, 2> sinks{"none", "random"};
  static constexpr std::array<std::string_view, 2> answers{"no", "yes"};
  const std::span<const std::string_view> choices =
      word.name == "align" ? corners : (word.name == "sink" ? sinks : answers);
  const Result<std::size_t> choice = choose(word, choices);
  if (!choice.ok()) return choice.status();
  const bool second = choice.value() == 1;
  if (word.name == "align") line.align = second ? Align::top_left : Align::bottom_right;
  if (word.name == "sink") line.sink = second;
  if (word.name == "lse") line.lse = second;
  if (word.name == "dlse") line.dlse = second;
  return {};
}

// What others call a field; any other name is an argument of the expressions.
std::string_view field_meant(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> meant[] = {
      {"batch", "b"},   {"heads", "h"},  {"num_heads", "h"}, {"seqlen", "s"},
      {"seq_len", "s"}, {"length", "s"}, {"head_dim", "d"},  {"headdim", "d"}};
  for (const auto& [word, field] : meant) {
    if (name == word) return field;
  }
  return "";
}

// The name is that of an argument which no expression reads.
Status check_field_meant(const Word& word, const ProblemLine& line) {
  const auto read = [&](const std::string& text) {
    return text.find(word.name) != std::string::npos;
  };
  if (read(line.mask) || read(line.score) || read(line.definitions)) return {};
  const bool causal = word.name == "causal" || word.name == "is_causal";
  const std::string field(field_meant(word.name));
  if (field.empty() && !causal) return {};
  return error_at(word.column,
                  quoted(word.name) + " is no field; b, h, s, d, mask, ... are allowed; write " +
                      (causal ? "mask=causal" : field + "=" + std::string(word.value)));
}

Status read_argument(const Word& word, ProblemLine& line) {
  std::string_view name = word.name;
  const bool explicit_name = name.starts_with("arg.");
  if (explicit_name) name.remove_prefix(4);
  const auto letter = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const bool named = !name.empty() && std::all_of(name.begin(), name.end(), letter) &&
                     !(name.front() >= '0' && name.front() <= '9');
  if (!named || word.value.empty()) {
    return error_at(word.column, quoted(word.name) + " is " + quoted(word.value) +
                                     "; a name of letters, digits and _ with a value is expected; "
                                     "write it as in ids=documents(8)");
  }
  line.args.push_back({std::string(name), std::string(word.value)});
  return {};
}

// The numbers of a dropout; which of them make sense is for validate to say.
Result<bool> read_dropout(const Word& word, Dropout& dropout) {
  bool read = false;
  if (word.name == "dropout") {
    read = read_number(word.value, dropout.p);
  } else if (word.name == "seed") {
    read = read_number(word.value, dropout.seed);
  } else if (word.name == "offset") {
    read = read_number(word.value, dropout.offset);
  } else if (word.name == "row0") {
    read = read_number(word.value, dropout.row0);
  } else if (word.name == "col0") {
    read = read_number(word.value, dropout.col0);
  } else {
    return false;
  }
  if (read) return true;
  return error_at(word.column, std::string(word.name) + " is " + quoted(word.value) +
                                   "; a number is allowed, a whole one but for dropout; write it "
                                   "as in dropout=0.1 seed=7");
}

Status read_field(const Word& word, ProblemLine& line) {
  const Result<bool> dropout = read_dropout(word, line.dropout);
  if (!dropout.ok()) return dropout.status();
  if (dropout.value()) return {};
  if (word.name == "b") {
    std::int64_t again = 0;
    if (Status s = read_sizes(word, line.b, again); !s.ok()) return s;
    if (again == line.b) return {};
    return error_at(word.column,
                    "b is " + quoted(word.value) + "; there is one batch size; write one number");
  }
  if (word.name == "h") return read_sizes(word, line.h_q, line.h_kv);
  if (word.name == "s") return read_sizes(word, line.s_q, line.s_kv);
  if (word.name == "d") return read_sizes(word, line.d, line.d_v);
  if (word.name == "out") {
    line.out = DType::float32;
    return read_dtype(word, *line.out);
  }
  if (word.name == "mask") return line.mask = word.value, Status{};
  if (word.name == "score") return line.score = word.value, Status{};
  if (word.name == "definitions") return line.definitions = word.value, Status{};
  if (word.name == "scale") {
    line.scale = 0.0;
    if (read_number(word.value, *line.scale)) return {};
    return error_at(word.column, "scale is " + quoted(word.value) +
                                     "; a number is allowed; leave it out for 1 / sqrt(d)");
  }
  if (word.name == "device") {
    const std::optional<Device> device = device_of(word.value);
    if (device) return line.device = *device, Status{};
    return error_at(word.column, "device is " + quoted(word.value) +
                                     "; cpu, cuda and a number after it as in cuda:1 are allowed; "
                                     "write one of these");
  }
  if (word.name == "q_start") return read_start(word, line.q_start.emplace());
  if (word.name == "k_start") return read_start(word, line.k_start.emplace());
  if (word.name == "q_lens") return read_lengths(word, line.q_lens.emplace());
  if (word.name == "k_lens") return read_lengths(word, line.k_lens.emplace());
  if (word.name == "k_used") return read_lengths(word, line.k_used.emplace());
  if (word.name == "page") return read_count(word, line.page.emplace());
  if (word.name == "new") return read_count(word, line.s_new);
  return read_choice(word, line);
}

// Packed lengths make b and s; whatever else says them has to agree.
Status take_lengths(const std::set<std::string_view>& seen, ProblemLine& line) {
  const auto settle = [&seen](std::string_view lengths, std::string_view field, std::int64_t made,
                              std::int64_t& size, bool free) {
    if (free && !seen.contains(field)) size = made;
    if (size == made) return Status{};
    return error_at(0, std::string(lengths) + " make " + std::string(field) + " " +
                           std::to_string(made) + ", the line says " + std::to_string(size) +
                           "; both have to agree; leave " + std::string(field) + " out");
  };
  bool b_is_free = true;
  for (const auto& [name, lengths, size] :
       {std::tuple{"q_lens", &line.q_lens, &line.s_q},
        {"k_lens", &line.k_lens, &line.s_kv},
        {"k_used", &line.k_used, static_cast<std::int64_t*>(nullptr)}}) {
    if (!*lengths || (*lengths)->numbers.empty()) continue;
    const std::vector<std::int64_t>& numbers = (*lengths)->numbers;
    if (Status s = settle(name, "b", static_cast<std::int64_t>(numbers.size()), line.b, b_is_free);
        !s.ok()) {
      return s;
    }
    b_is_free = false;
    if (size == nullptr) continue;
    const std::int64_t tokens = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
    if (Status s = settle(name, "s", tokens, *size, true); !s.ok()) return s;
  }
  return {};
}

}  // namespace

std::optional<Device> device_of(std::string_view text) {
  if (text == "cpu") return Device{};
  Device device{Device::Kind::cuda, 0};
  if (text == "cuda") return device;
  if (text.substr(0, 5) != "cuda:" || !read_number(text.substr(5), device.index)) return {};
  return device.index < 0 ? std::nullopt : std::optional(device);
}

bool is_line_field(std::string_view name) {
  return std::find(fields.begin(), fields.end(), name) != fields.end();
}

Result<ProblemLine> parse_problem_line(std::string_view text) {
  Result<std::vector<Word>> split_words = split(text);
  if (!split_words.ok()) return split_words.status();
  const std::vector<Word>& words = split_words.value();
  if (words.empty() || !words[0].name.empty() ||
      (words[0].value != "fwd" && words[0].value != "bwd")) {
    return error_at(
        words.empty() ? 0 : words[0].column,
        (words.empty() ? "the line is empty" : "the line does not start with fwd or bwd") +
            std::string("; fwd DTYPE b= h= s= d= mask= ... is expected; write it as "
                        "in: fwd f32 b=1 h=8 s=2048 d=64 mask=causal"));
  }
  ProblemLine line;
  if (words[0].value == "bwd") line.pass = Pass::backward;
  const Word no_word{.column = text.size(), .name = {}, .value = {}};
  if (Status s =
          read_dtype(words.size() > 1 && words[1].name.empty() ? words[1] : no_word, line.dtype);
      !s.ok()) {
    return s;
  }
  std::set<std::string_view> seen;
  for (const Word& word : std::span(words).subspan(2)) {
    if (word.name.empty()) {
      return error_at(word.column, quoted(word.value) +
                                       " has no `=`; name=value is expected; quote values that "
                                       "hold blanks");
    }
    if (!seen.insert(word.name).second) {
      return error_at(word.column, std::string(word.name) +
                                       " is given twice; each name once is allowed; drop one");
    }
    if (Status s = is_line_field(word.name) ? read_field(word, line) : read_argument(word, line);
        !s.ok()) {
      return s;
    }
  }
  for (const Word& word : std::span(words).subspan(2)) {
    if (Status s = check_field_meant(word, line); !s.ok()) return s;
  }
  if (Status s = take_lengths(seen, line); !s.ok()) return s;
  return line;
}

}  // namespace onepass
