// Random masks over a fixed set of array arguments, for tests of the readers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lang/program.h"
#include "onepass/attention.h"

namespace onepass::lang {

/// Array arguments of every dtype, with NaN, infinities, broadcast dims, odd strides and no
/// elements.
class ArrayArguments {
 public:
  static constexpr std::int64_t b = 2, h = 3, s_q = 7, s_kv = 150, tokens = 310;

  ArrayArguments() {
    std::mt19937 random(7);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    const double odd[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0, 1e-300, 0.1, 1e30};
    for (double& x : f64_) x = pick(0, 9) == 0 ? odd[pick(0, 6)] : pick(-800, 800) / 100.0;
    for (std::size_t i = 0; i < f32_.size(); ++i) f32_[i] = static_cast<float>(f64_[i % 977]);
    for (std::uint16_t& x : half_) x = static_cast<std::uint16_t>(pick(0, 65535));
    for (std::int32_t& x : i32_) x = pick(-3, 9);
    for (std::int64_t& x : i64_) x = pick(-9, 160);
    for (std::uint8_t& x : u8_) x = static_cast<std::uint8_t>(pick(0, 255));
    for (std::uint8_t& x : bool_) x = static_cast<std::uint8_t>(pick(0, 1));
    add("dense4", TensorView(f32_.data(), DType::float32, {b, h, s_q, s_kv}));
    add("wide", TensorView(f32_.data(), DType::float32, {1, h, 1, s_kv}));
    add("table", TensorView(f64_.data(), DType::float64, {s_q, s_kv / 3}));
    add("brain", TensorView(half_.data(), DType::bfloat16, {s_q, s_kv}));
    add("half", TensorView(half_.data() + 1, DType::float16, {s_kv}));
    add("slopes", TensorView(half_.data() + 9, DType::float16, {b, h}));
    add("ids", TensorView(i32_.data(), DType::int32, {b, s_kv}));
    add("tok", TensorView(i64_.data(), DType::int64, {tokens}));
    add("bytes", TensorView(u8_.data(), DType::uint8, {s_kv}));
    // Keys are the slow dim, and run backwards.
    const std::int64_t shape[] = {s_q, s_kv}, strides[] = {1, -s_q};
    add("keep", TensorView(bool_.data() + (s_kv - 1) * s_q, DType::boolean, shape, strides));
    add("one", TensorView(f32_.data() + 5, DType::float32, {}));
    add("none", TensorView(nullptr, DType::float32, {0}));
    arguments_.push_back({"limit", std::int64_t{37}});
    arguments_.push_back({"ratio", 0.3});
    arguments_.push_back({"flag", true});
  }

  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  void add(std::string name, TensorView view) { arguments_.push_back({std::move(name), view}); }

  std::vector<double> f64_ = std::vector<double>(b * h * s_q * s_kv);
  std::vector<float> f32_ = std::vector<float>(b * h * s_q * s_kv);
  std::vector<std::uint16_t> half_ = std::vector<std::uint16_t>(2 * s_q * s_kv);
  std::vector<std::int32_t> i32_ = std::vector<std::int32_t>(b * s_kv);
  std::vector<std::int64_t> i64_ = std::vector<std::int64_t>(tokens);
  std::vector<std::uint8_t> u8_ = std::vector<std::uint8_t>(s_kv);
  std::vector<std::uint8_t> bool_ = std::vector<std::uint8_t>(s_q * s_kv);
  std::vector<Argument> arguments_;
};

class RandomExpression {
 public:
  explicit RandomExpression(std::uint32_t seed) : random_(seed) {}

  std::string boolean(int depth) {
    if (depth <= 0) return one_of({"true", "false", "flag", "causal", "keep[row, col]"});
    switch (pick(9)) {
      case 0:
        return "(" + boolean(depth - 1) + " & " + boolean(depth - 1) + ")";
      case 1:
        return "(" + boolean(depth - 1) + " | " + boolean(depth - 1) + ")";
      case 2:
        return "!" + boolean(depth - 1);
      case 3:
        return "(" + boolean(depth - 1) + " ? " + boolean(depth - 1) + " : " + boolean(depth - 1) +
               ")";
      case 4:
        return "keep[" + integer(depth - 2) + ", " + integer(depth - 2) + "]";
      case 5:
        return "(" + integer(depth - 1) + comparison() + integer(depth - 1) + ordering() +
               integer(depth - 1) + ")";
      case 6:
        return "(" + integer(depth - 1) + comparison() + integer(depth - 1) + ")";
      default:
        return "(" + real(depth - 1) + comparison() + real(depth - 1) + ")";
    }
  }

  std::string integer(int depth) {
    if (depth <= 0) {
      return one_of({"q", "k", "row", "col", "b", "h", "h_kv", "s_q", "s_kv", "token_q", "token_k",
                     "q", "k", "row", "col", "0", "1", "2",    "-3",  "8",    "17",      "limit"});
    }
    switch (pick(11)) {
      case 0:
        return "(" + integer(depth - 1) + " + " + integer(depth - 1) + ")";
      case 1:
        return "(" + integer(depth - 1) + " - " + integer(depth - 1) + ")";
      case 2:
        return "(" + integer(depth - 1) + " * " + integer(depth - 1) + ")";
      case 3:
        return "(" + integer(depth - 1) + " // " + divisor(depth - 1) + ")";
      case 4:
        return "(" + integer(depth - 1) + " % " + divisor(depth - 1) + ")";
      case 5:
        return one_of({"min(", "max("}) + integer(depth - 1) + ", " + integer(depth - 1) + ")";
      case 6:
        return one_of({"-", "abs"}) + "(" + integer(depth - 1) + ")";
      case 7:
        return "where(" + boolean(depth - 1) + ", " + integer(depth - 1) + ", " +
               integer(depth - 1) + ")";
      case 8:
        return "ids[" + integer(depth - 2) + ", " + integer(depth - 2) + "]";
      case 9:
        return one_of({"tok[", "bytes["}) + integer(depth - 2) + "]";
      default:
        return integer(0);
    }
  }

  std::string real(int depth) {
    if (depth <= 0) return one_of({"0.5", "ratio", "inf", "0.1", "3.75", "one", "half[col]"});
    switch (pick(13)) {
      case 0:
        return "(" + real(depth - 1) + " + " + real(depth - 1) + ")";
      case 1:
        return "(" + real(depth - 1) + " - " + integer(depth - 1) + ")";
      case 2:
        return "(" + integer(depth - 1) + " * " + real(depth - 1) + ")";
      case 3:
        return "(" + integer(depth - 1) + " / " + real(depth - 1) + ")";
      case 4:
        return "(" + real(depth - 1) + one_of({" // ", " % "}) + real(depth - 1) + ")";
      case 5:
        return one_of({"min(", "max("}) + real(depth - 1) + ", " + real(depth - 1) + ")";
      case 6:
        return one_of({"-", "abs", "floor"}) + "(" + real(depth - 1) + ")";
      case 7:
        return "(" + boolean(depth - 1) + " ? " + real(depth - 1) + " : " + integer(depth - 1) +
               ")";
      case 8:
        return one_of({"dense4[", "wide["}) + integer(depth - 2) + ", h, " + integer(depth - 3) +
               ", " + integer(depth - 2) + "]";
      case 9:
        return one_of({"table[", "brain[", "slopes["}) + integer(depth - 2) + ", " +
               integer(depth - 2) + "]";
      case 10:
        return one_of({"half[", "none["}) + integer(depth - 1) + "]";
      case 11:
        return "dense4[b, h, row, " + one_of({"col", "k", "k - q", "col - 3", "40 - col"}) + "]";
      default:
        return real(0);
    }
  }

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

 private:
  std::string one_of(std::vector<std::string> words) {
    return words[static_cast<std::size_t>(pick(static_cast<int>(words.size())))];
  }
  std::string comparison() { return one_of({" < ", " <= ", " == ", " != ", " > ", " >= "}); }
  std::string ordering() { return one_of({" < ", " <= "}); }
  // Literal divisors may not be 0; run-time ones may.
  std::string divisor(int depth) {
    if (depth <= 0 || pick(2) == 0) return one_of({"1", "-1", "3", "-7", "16", "h", "limit"});
    return "(" + integer(depth) + " - col)";
  }

  std::mt19937 random_;
};

}  // namespace onepass::lang
