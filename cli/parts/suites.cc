#include "cli/parts/suites.h"

#include "onepass/status.h"

namespace onepass::cli {
namespace {

// Under half a minute on two cores.
std::vector<std::string> small() {
  return {
      "fwd f32 b=1 h=2 s=1024 d=64",
      "fwd f32 b=1 h=2 s=1024 d=64 mask=causal",
      "fwd f32 b=1 h=2 s=2048 d=128 mask=causal",
      "fwd bf16 b=1 h=2 s=1024 d=64 mask=causal",
      "fwd f32 b=1 h=2 s=4096 d=64 mask=window(255,0)",
      "fwd f32 b=4 h=8/2 s=1/2048 d=128",
  };
}

// Every dtype, the masks and scores people use, and shapes of known models.
std::vector<std::string> cpu() {
  return {
      "fwd f32 b=1 h=2 s=2048 d=64",
      "fwd f32 b=1 h=2 s=2048 d=128",
      "fwd f32 b=1 h=2 s=2048 d=64 mask=causal",
      "fwd f32 b=1 h=2 s=2048 d=128 mask=causal",
      "fwd bf16 b=1 h=2 s=2048 d=64",
      "fwd bf16 b=1 h=2 s=2048 d=128",
      "fwd bf16 b=1 h=2 s=2048 d=64 mask=causal",
      "fwd bf16 b=1 h=2 s=2048 d=128 mask=causal",
      "fwd f16 b=1 h=2 s=2048 d=64 mask=causal",
      "fwd f64 b=1 h=2 s=1024 d=64 mask=causal",
      "fwd f32 b=1 h=2 s=8192 d=64 mask=window(255,0)",
      "fwd f32 b=1 h=2 s=8192 d=64 mask=document(ids) ids=documents(8)",
      "fwd f32 b=1 h=2 s=4096 d=64 mask=causal&chunked(512)",
      "fwd f32 b=1 h=2 s=2048 d=64 mask=dense(m) m=bool[1,1,s_q,s_kv]",
      "fwd f32 b=1 h=2 s=2048 d=64 mask=causal score=softcap(s,50)",
      "fwd f32 b=1 h=2 s=2048 d=64 mask=causal score=alibi(s,m) m=alibi",
      "fwd f32 b=1 h=2 s=2048 d=64 score=bias(s,m) m=random",
      "fwd f32 b=1 h=8/2 s=1024 d=256 mask=causal score=softcap(s,50) scale=0.0625",
      "fwd f32 b=6 h=12 s=512 d=64 mask=lengths(n) n=[512,384,97,33,12,1]",
      "fwd f32 b=4 h=12 s=197 d=64",
      "fwd f32 b=2 h=8 s=4096/77 d=40",
      "fwd f32 b=64 h=4 s=49 d=32 score=bias(s,m) m=random",
      "fwd f32 b=8 h=32/8 s=1/4096 d=128",
      "fwd bf16 b=8 h=32/8 s=1/4096 d=128",
  };
}

}  // namespace

std::vector<std::string> suite_of(std::string_view argument, std::string_view name) {
  if (name == "small") return small();
  if (name == "cpu") return cpu();
  throw Error(Status::invalid(std::string(argument) + ": \"" + std::string(name) +
                              "\"; small and cpu are allowed; name one or give a problem line"));
}

}  // namespace onepass::cli
