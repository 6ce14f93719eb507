// Values, masks and scores drawn from a seed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace onepass::conformance {

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : engine_(seed) {}

  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(high - low + 1));
  }
  bool percent(std::int64_t chance) { return in(0, 99) < chance; }
  double real(double size) { return size * (static_cast<double>(engine_()) / 2147483648.0 - 1.0); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[in(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }
  std::vector<double> reals(std::int64_t count, double size) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(real(size));
    return values;
  }
  /// Multiples of 1/16: sums of their products are exact, so that no logit tips over an edge.
  std::vector<double> sixteenths(std::int64_t count, std::int64_t size) {
    std::vector<double> values = integers(count, -16 * size, 16 * size);
    for (double& value : values) value /= 16.0;
    return values;
  }
  std::vector<double> integers(std::int64_t count, std::int64_t low, std::int64_t high) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(in(low, high)));
    return values;
  }

  std::string integer(int depth) {
    if (depth == 0 || percent(20)) {
      return pick<std::string>({"q", "k", "row", "col", "b", "h", "h_kv", "s_q", "s_kv", "w",
                                "ids[b, k]", "ids[b, q]", "n[b]", std::to_string(in(0, 90))});
    }
    const std::string a = integer(depth - 1), b = integer(depth - 1);
    switch (in(0, 7)) {
      case 0:
        return "(" + a + " + " + b + ")";
      case 1:
        return "(" + a + " - " + b + ")";
      case 2:
        return "(" + a + " * " + b + ")";
      case 3:
        return a + " // " + std::to_string(in(2, 40));
      case 4:
        return a + " % " + pick<std::string>({std::to_string(in(2, 40)), "w", "(k - q)"});
      case 5:
        return "min(" + a + ", " + b + ")";
      case 6:
        return "max(" + a + ", -" + b + ")";
      default:
        return "abs(" + a + " - " + b + ")";
    }
  }

  std::string real_number(int depth) {
    const std::string a = integer(depth);
    return pick<std::string>({"x[col] * " + a, "(" + a + ") / 7", a + " + 0.37 * x[q]",
                              "floor(x[k] * 3.3) - " + a, "u * " + a, a + " % 3.25"});
  }

  std::string boolean(int depth) {
    const std::string compare = pick<std::string>({" < ", " <= ", " > ", " >= ", " == ", " != "});
    if (depth <= 1 || percent(25)) {
      if (percent(25)) return real_number(1) + compare + real_number(1);
      return integer(2) + compare + integer(1);
    }
    const std::string a = boolean(depth - 1), b = boolean(depth - 1);
    switch (in(0, 4)) {
      case 0:
        return "(" + a + " & " + b + ")";
      case 1:
        return "(" + a + " | " + b + ")";
      case 2:
        return "!(" + a + ")";
      case 3:
        return "(" + a + " ? " + b + " : " + pick<std::string>({"true", "k <= q"}) + ")";
      default:
        return integer(1) + " - w < " + integer(1) + " <= " + integer(1);
    }
  }

  std::string mask() {
    const std::string form = pick<std::string>(
        {"full", "causal", "window(w, 0)", "window(w, 3)", "window(-1, w)", "chunked(w)",
         "sliding_window_causal(w)", "sliding_window_noncausal(w)", "chunked_causal(w)",
         "prefix(w)", "prefix(n)", "document(ids)", "document(tokens)", "lengths(n)", "lengths(w)",
         "sink_window(2, w)", "dense(m)"});
    switch (in(0, 5)) {
      case 0:
        return boolean(3);
      case 1:
        return form + " & " + boolean(2);
      case 2:
        return form + pick<std::string>({" & causal", " | k == q", " & k % 5 != 2"});
      default:
        return form;
    }
  }

  std::string score() {
    return pick<std::string>(
        {"", "", "softcap(s, 8)", "alibi(s, slopes)", "bias(s, bias4)", "s * 0.5 + x[col]",
         "where(k <= q, s, s - 1.5)", "k % 5 == 0 ? -inf : s", "softcap(alibi(s, slopes), 20)",
         "s + x[max(min(q - k, 15), -15) + 15]", "abs(s) - 1", "log(1 + exp(s))",
         "sqrt(abs(s) + 1)", "s + floor(k / 4) * 0.125", "min(s, 2) + max(s, -1.5)",
         "document(ids) ? s : -inf", "-s", "s + u"});
  }

 private:
  std::mt19937 engine_;
};

}  // namespace onepass::conformance
