// What --help says of problem lines.
#pragma once

namespace onepass::cli {

inline constexpr const char* problem_line_help =
    R"help(A problem line says what a call computes:
  fwd bf16 b=2 h=32/8 s=4096 d=128 mask=causal
fwd or bwd (the gradients), then f64, f32, bf16 or f16, then any of
  b= h= s= d=       batch, heads, lengths, head dim (default 1 1 1 64);
                    h=h_q/h_kv, s=s_q/s_kv, d=d/d_v where the two differ
  mask= score= definitions=   expressions; quote what holds blanks
  scale= align=top_left q_start= k_start=[0,64] sink=random out=f32 lse=yes
  q_lens=[5,0,7] k_lens=[9,2,7] packed sequences; k_used=[3,2,7] keys in use of each;
  page=16 new=1     k_used keys in a cache of such pages (0: contiguous), the last new
  device=cuda       on a GPU (cuda:1: the second)
  dropout=0.1 seed=7 offset= row0= col0=   dlse=yes (bwd: a gradient through lse)
  name=VALUE        an argument of the expressions (arg.name=VALUE if the name is
                    one of the above). VALUE: a number, true, false;
                    [5,9] a list; documents(8) ids of 8 documents (b, positions);
                    lengths (b); alibi, the slopes (h); random = float32[1,h,s_q,s_kv];
                    int32[b,s_kv], bool[1,1,s_q,s_kv] ...: made-up values
  fwd f32 b=1 h=8 s=2048 d=64 mask=causal score="s - m[h] * (q - k)" m=alibi
)help";

/// What --help says of --device.
inline constexpr const char* device_help = "cpu, cuda or cuda:1; default: what the line says";

}  // namespace onepass::cli
