// One line of text that says what a call computes: `fwd bf16 b=2 h=32/8 s=4096 d=128 mask=causal`.
//
//   fwd DTYPE            f64 f32 bf16 f16 (or the long names); bwd DTYPE for the gradients
//   b= h= s= d=          batch, heads, lengths, head dim; h=h_q/h_kv, s=s_q/s_kv, d=d/d_v
//   out=DTYPE            dtype of o where it is not DTYPE
//   mask= score= definitions=    expressions; quote what holds blanks: mask="q - 5 < k"
//   scale=0.5  align=top_left  q_start=7  k_start=[0,64]  sink=random  lse=yes
//   dlse=yes             a bwd line also has a gradient through lse
//   device=cuda          on a GPU, cuda:1 = the second
//   dropout=0.1 seed=7 offset=0 row0=0 col0=0
//   q_lens=[5,0,7]  k_lens=[9,2,7]  packed sequences, which make b and s; int32[b]: as s says in
//   all k_used=[3,2,7]       keys in use of each sequence page=16 new=1        k_used keys in a
//   cache of such pages (0 = contiguous), the last ones new name=VALUE           an argument of the
//   expressions; arg.name=VALUE where name is a field above
//
// VALUE is a number, true, false, a list `[5,9]`, `dtype[dims]` (made-up values; dims are numbers
// or b h h_kv s_q s_kv) or one of documents(n), lengths, alibi, random.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"

namespace onepass {

/// A start position or a length: one number, or one number per sequence; without any number
/// (written int64[b] or int32[b]) an array whose values the line does not say.
struct LineStart {
  bool per_sequence = false;
  std::vector<std::int64_t> numbers;
  DType dtype = DType::int64;
};

struct LineArgument {
  std::string name;
  std::string value;  // as written, without quotes
};

struct ProblemLine {
  Pass pass = Pass::forward;
  Device device;
  DType dtype = DType::float32;
  std::optional<DType> out;
  std::int64_t b = 1, h_q = 1, h_kv = 1, s_q = 1, s_kv = 1, d = 64, d_v = 64;
  std::string mask = "full";
  std::string score;
  std::string definitions;
  std::optional<double> scale;
  Align align = Align::bottom_right;
  std::optional<LineStart> q_start, k_start;
  std::optional<LineStart> q_lens, k_lens, k_used;  // per sequence
  std::optional<std::int64_t> page;                 // a call over a cache
  std::int64_t s_new = 0;
  bool sink = false;
  bool lse = false;   // forward
  bool dlse = false;  // backward
  Dropout dropout;
  std::vector<LineArgument> args;
};

/// Errors name the column of the line (1-based).
Result<ProblemLine> parse_problem_line(std::string_view text);

/// The shortest line that parses to the same ProblemLine.
std::string to_text(const ProblemLine& line);

/// "f64", "f32", "bf16", "f16"; the long name of any other dtype.
std::string short_name(DType dtype);

/// cpu, cuda or cuda:1.
std::optional<Device> device_of(std::string_view text);

/// The float dtype of that short or long name, if it is one.
std::optional<DType> float_dtype(std::string_view name);

/// The line has a field of that name, so an argument of that name is written `arg.name`.
bool is_line_field(std::string_view name);

/// What a validated problem would be written as. Arrays become `dtype[dims]`: a line holds no data.
ProblemLine line_of(const Problem& problem);

}  // namespace onepass
