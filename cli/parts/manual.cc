#include "cli/parts/manual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cli/parts/matmul.h"
#include "cli/parts/row_softmax.h"
#include "cli/parts/timing.h"
#include "core/rounding.h"
#include "cpu/threads.h"
#include "lang/evaluate.h"
#include "lang/interval.h"

namespace onepass::cli {
namespace {

constexpr std::int64_t block_rows = 96;  // rows of the score matrix that one work item covers
constexpr std::int64_t float_bytes = 4;

// An evaluator with memory of its own, for one (sequence, head).
class Reader {
 public:
  Reader(const lang::Program& program, const lang::Scope& scope)
      : memory_(zeros(DType::uint8, std::array{lang::evaluator_scratch_bytes(program)})),
        evaluator(program, scope, lang::fits_int32(program, scope), memory_.view.data) {}

 private:
  Array memory_;

 public:
  lang::Evaluator<float> evaluator;
};

// Calls body(first column, columns) for pieces that one begin_keys takes.
template <class Body>
void each_piece(std::int64_t s_kv, const Body& body) {
  for (std::int64_t col = 0; col < s_kv; col += lang::max_keys) {
    body(col, static_cast<int>(std::min<std::int64_t>(lang::max_keys, s_kv - col)));
  }
}

}  // namespace

double ManualRun::seconds() const {
  double sum = 0.0;
  for (const ManualStep& step : steps) sum += step.seconds;
  return sum;
}

std::int64_t ManualRun::bytes_moved() const {
  std::int64_t sum = 0;
  for (const ManualStep& step : steps) sum += step.bytes_moved;
  return sum;
}

Manual::Manual(const Problem& problem, const Array& q, const Array& k, const Array& v, int threads)
    : problem_(problem), q_(q), k_(k), v_(v), threads_(threads) {
  const Problem& p = problem;
  const std::uint8_t by_scope = lang::varies_batch | lang::varies_head;
  mask_varies_ = p.has_mask && (p.mask.top().varies & by_scope) != 0;
  scores_ = zeros(DType::float32, std::array{p.b, p.h_q, p.s_q, p.s_kv});
  packed_ = zeros(DType::float32, std::array{p.b * p.h_kv, std::max(packed_floats(p.d, p.s_kv),
                                                                    packed_floats(p.s_kv, p.d_v))});
  if (!p.has_mask) return;
  mask_ = zeros(DType::boolean, mask_varies_ ? std::array{p.b, p.h_q, p.s_q, p.s_kv}
                                             : std::array<std::int64_t, 4>{1, 1, p.s_q, p.s_kv});
  fill_mask();
}

std::int64_t Manual::bytes() const {
  return (scores_.view.elements() + packed_.view.elements()) * float_bytes + mask_.view.elements();
}

void Manual::fill_mask() {
  const Problem& p = problem_;
  const std::int64_t heads = mask_.view.shape[0] * mask_.view.shape[1];
  cpu::parallel_for(threads_, heads, [&](std::int64_t head, int) {
    Reader reader(p.mask, p.scope(head / mask_.view.shape[1], head % mask_.view.shape[1]));
    std::uint8_t* matrix = mask_.data<std::uint8_t>() + head * p.s_q * p.s_kv;
    std::uint8_t shown[lang::max_keys + lang::lane_block];
    each_piece(p.s_kv, [&](std::int64_t col, int count) {
      reader.evaluator.begin_keys(col, count);
      for (std::int64_t row = 0; row < p.s_q; ++row) {
        reader.evaluator.mask_row(row, 0, count, shown);
        std::copy_n(shown, count, matrix + row * p.s_kv + col);
      }
    });
  });
}

void Manual::scores() {
  const Problem& p = problem_;
  const std::int64_t panel = packed_.view.shape[1];
  cpu::parallel_for(threads_, p.b * p.h_kv, [&](std::int64_t item, int) {
    const std::int64_t b = item / p.h_kv, h = item % p.h_kv;
    pack_panels(k_.data<float>() + (b * p.s_kv * p.h_kv + h) * p.d, 1, p.h_kv * p.d, p.d, p.s_kv,
                packed_.data<float>() + item * panel);
  });
  const std::int64_t blocks = divide_up(p.s_q, block_rows);
  cpu::parallel_for(threads_, p.b * p.h_q * blocks, [&](std::int64_t item, int) {
    const std::int64_t head = item / blocks, row = item % blocks * block_rows;
    const std::int64_t b = head / p.h_q, h = head % p.h_q;
    multiply(q_.data<float>() + ((b * p.s_q + row) * p.h_q + h) * p.d, p.h_q * p.d,
             packed_.data<float>() + (b * p.h_kv + h / p.group) * panel,
             scores_.data<float>() + (head * p.s_q + row) * p.s_kv, p.s_kv,
             std::min(block_rows, p.s_q - row), p.d, p.s_kv);
  });
}

void Manual::scale_and_mask() {
  const Problem& p = problem_;
  const std::int64_t blocks = divide_up(p.s_q, block_rows);
  cpu::parallel_for(threads_, p.b * p.h_q * blocks, [&](std::int64_t item, int) {
    const std::int64_t head = item / blocks, first = item % blocks * block_rows;
    const std::int64_t last = std::min(first + block_rows, p.s_q);
    float* matrix = scores_.data<float>() + head * p.s_q * p.s_kv;
    const std::uint8_t* mask =
        p.has_mask ? mask_.data<std::uint8_t>() + (mask_varies_ ? head * p.s_q * p.s_kv : 0)
                   : nullptr;
    for (std::int64_t row = first; row < last; ++row) {
      scale_row(matrix + row * p.s_kv, p.s_kv, static_cast<float>(p.scale));
    }
    if (p.has_score) {
      Reader reader(p.score, p.scope(head / p.h_q, head % p.h_q));
      each_piece(p.s_kv, [&](std::int64_t col, int count) {
        reader.evaluator.begin_keys(col, count);
        for (std::int64_t row = first; row < last; ++row) {
          float s[lang::max_keys + lang::lane_block];
          std::copy_n(matrix + row * p.s_kv + col, count, s);
          reader.evaluator.score_row(row, 0, count, s);
          std::copy_n(s, count, matrix + row * p.s_kv + col);
        }
      });
    }
    for (std::int64_t row = first; mask != nullptr && row < last; ++row) {
      hide_row(matrix + row * p.s_kv, mask + row * p.s_kv, p.s_kv);
    }
  });
}

void Manual::softmax() {
  const Problem& p = problem_;
  const std::int64_t blocks = divide_up(p.s_q, block_rows);
  cpu::parallel_for(threads_, p.b * p.h_q * blocks, [&](std::int64_t item, int) {
    const std::int64_t head = item / blocks, first = item % blocks * block_rows;
    for (std::int64_t row = first; row < std::min(first + block_rows, p.s_q); ++row) {
      const double sink =
          p.sink.given()
              ? (p.sink.dtype == DType::float64
                     ? static_cast<const double*>(p.sink.data)[head % p.h_q * p.sink.strides[0]]
                     : static_cast<const float*>(p.sink.data)[head % p.h_q * p.sink.strides[0]])
              : -std::numeric_limits<double>::infinity();
      softmax_row(scores_.data<float>() + (head * p.s_q + row) * p.s_kv, p.s_kv,
                  static_cast<float>(sink));
    }
  });
}

void Manual::output(float* o) {
  const Problem& p = problem_;
  const std::int64_t panel = packed_.view.shape[1];
  cpu::parallel_for(threads_, p.b * p.h_kv, [&](std::int64_t item, int) {
    const std::int64_t b = item / p.h_kv, h = item % p.h_kv;
    pack_panels(v_.data<float>() + (b * p.s_kv * p.h_kv + h) * p.d_v, p.h_kv * p.d_v, 1, p.s_kv,
                p.d_v, packed_.data<float>() + item * panel);
  });
  const std::int64_t blocks = divide_up(p.s_q, block_rows);
  cpu::parallel_for(threads_, p.b * p.h_q * blocks, [&](std::int64_t item, int) {
    const std::int64_t head = item / blocks, row = item % blocks * block_rows;
    const std::int64_t b = head / p.h_q, h = head % p.h_q;
    multiply(scores_.data<float>() + (head * p.s_q + row) * p.s_kv, p.s_kv,
             packed_.data<float>() + (b * p.h_kv + h / p.group) * panel,
             o + ((b * p.s_q + row) * p.h_q + h) * p.d_v, p.h_q * p.d_v,
             std::min(block_rows, p.s_q - row), p.s_kv, p.d_v);
  });
}

ManualRun Manual::run(float* o) {
  const Problem& p = problem_;
  const std::int64_t matrix = scores_.view.elements() * float_bytes;
  const std::int64_t q = q_.view.elements() * float_bytes, k = k_.view.elements() * float_bytes;
  const std::int64_t v = v_.view.elements() * float_bytes;
  const std::int64_t written = p.b * p.s_q * p.h_q * p.d_v * float_bytes;
  ManualRun result;
  result.steps[0] = {"scores = q k^T", seconds_of([&] { scores(); }), q + k + matrix};
  result.steps[1] = {"scale, score, mask", seconds_of([&] { scale_and_mask(); }),
                     2 * matrix + mask_.view.elements()};
  result.steps[2] = {"softmax", seconds_of([&] { softmax(); }), 2 * matrix};
  result.steps[3] = {"output = p v", seconds_of([&] { output(o); }), matrix + v + written};
  return result;
}

}  // namespace onepass::cli
