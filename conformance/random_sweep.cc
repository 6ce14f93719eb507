// Problems drawn from a seed: shapes, layouts, masks, scores and options in any combination.
#include <random>
#include <regex>

#include "conformance/checker.h"
#include "conformance/every_case.h"

namespace onepass::conformance {
namespace {

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
         "prefix(w)", "prefix(n)", "document(ids)", "lengths(n)", "sink_window(2, w)", "dense(m)"});
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

NamedArgument array(const char* name, DType dtype, std::vector<std::int64_t> shape,
                    std::vector<double> values) {
  return {name, NamedArray{dtype, std::move(shape), std::move(values)}};
}

// Adds the arguments that the texts mention.
void add_arguments(Call& call, Draw& draw) {
  const Shape s = call.shape();
  const std::string text = call.mask + " " + call.score;
  const auto add = [&](const char* mention, NamedArgument argument) {
    if (text.find(mention) != std::string::npos) call.arguments.push_back(std::move(argument));
  };
  const DType integers = draw.pick({DType::int32, DType::int64});
  std::vector<double> ids = draw.integers(s.b * s.s_kv, -1, 3);
  if (draw.percent(60)) {
    for (std::int64_t i = 0; i < s.b * s.s_kv; ++i) {
      ids[static_cast<std::size_t>(i)] = static_cast<double>(i % s.s_kv / draw.in(20, 21));
    }
  }
  add("ids", array("ids", integers, {s.b, s.s_kv}, ids));
  add("n[b]", array("n", integers, {s.b}, draw.integers(s.b, 0, s.s_kv)));
  add("(n)", array("n", integers, {s.b}, draw.integers(s.b, 0, s.s_kv)));
  if (call.arguments.size() > 1 && call.arguments.back().name == "n" &&
      call.arguments[call.arguments.size() - 2].name == "n") {
    call.arguments.pop_back();
  }
  const bool has_w = std::regex_search(text, std::regex("\\bw\\b"));
  if (has_w) call.arguments.push_back({"w", draw.in(1, 80)});
  add("x[", array("x", draw.pick({DType::float32, DType::float64, DType::bfloat16}), {40},
                  draw.reals(40, 2.0)));
  add("slopes", array("slopes", DType::float32, {s.h_q}, draw.reals(s.h_q, 0.1)));
  const std::int64_t b = draw.pick({std::int64_t{1}, s.b}), h = draw.pick({std::int64_t{1}, s.h_q});
  const std::int64_t rows = draw.pick({std::int64_t{1}, s.s_q});
  add("bias4", array("bias4", draw.pick({DType::float32, DType::float16}), {b, h, rows, s.s_kv},
                     draw.reals(b * h * rows * s.s_kv, 1.0)));
  add("dense(m)", array("m", draw.pick({DType::boolean}), {b, h, rows, s.s_kv},
                        draw.integers(b * h * rows * s.s_kv, 0, 1)));
  if (text.find("u *") != std::string::npos || text.find("+ u") != std::string::npos) {
    call.arguments.push_back({"u", draw.real(1.5)});
  }
}

reference::Tensor drawn(Draw& draw, std::array<std::int64_t, 4> shape, double size) {
  return {shape, draw.reals(shape[0] * shape[1] * shape[2] * shape[3], size)};
}

Call draw_call(std::uint32_t seed) {
  Draw draw(seed);
  Shape s;
  s.b = draw.in(1, 3), s.h_kv = draw.in(1, 3), s.h_q = s.h_kv * draw.pick({1, 1, 2, 4});
  const auto length = [&] {
    return draw.percent(50) ? draw.in(1, 200) : draw.pick({1, 2, 3, 63, 64, 65, 127, 128, 129});
  };
  s.s_q = length(), s.s_kv = length();
  s.d = draw.percent(50) ? draw.in(1, 48) : draw.pick({8, 16, 32, 64, 80, 128});
  s.d_v = draw.percent(70) ? s.d : draw.in(1, 70);
  Call call;
  call.q = drawn(draw, {s.b, s.s_q, s.h_q, s.d}, 2.0);
  call.k = drawn(draw, {s.b, s.s_kv, s.h_kv, s.d}, 2.0);
  call.v = drawn(draw, {s.b, s.s_kv, s.h_kv, s.d_v}, 2.0);
  call = call.in(
      draw.pick({DType::float32, DType::float32, DType::float64, DType::bfloat16, DType::float16}));
  if (size_bytes(call.dtype) == 2 && draw.percent(30)) call.out_dtype = DType::float32;
  for (Layout Call::*layout :
       {&Call::q_layout, &Call::k_layout, &Call::v_layout, &Call::o_layout}) {
    call.*layout = draw.pick({Layout::seq_major, Layout::seq_major, Layout::head_major,
                              Layout::every_second_row, Layout::part_of_wider, Layout::strided_dim,
                              Layout::reversed});
  }
  call.mask = draw.mask();
  call.score = draw.score();
  add_arguments(call, draw);
  if (draw.percent(30)) call.scale = draw.real(0.5);
  if (draw.percent(20)) call.sink = draw.reals(s.h_q, 4.0);
  call.top_left = draw.percent(30);
  const auto starts = [&](std::vector<std::int64_t>& start) {
    const std::int64_t count = draw.percent(50) ? 1 : s.b;
    for (std::int64_t i = 0; i < count; ++i) start.push_back(draw.in(-100, 1000));
  };
  if (draw.percent(15)) starts(call.q_start);
  if (draw.percent(15)) starts(call.k_start);
  if (draw.percent(15)) call.dropout = {draw.pick({0.1, 0.5}), seed, 5, 16, 32};
  call.repeat = "onepass check random --seed " + std::to_string(seed) + " --count 1";
  return call;
}

}  // namespace

Outcome random_sweep(const Settings& settings) {
  Checker checker(settings);
  for (std::int64_t i = 0; i < settings.count; ++i) {
    checker.check(draw_call(settings.seed + static_cast<std::uint32_t>(i)));
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
