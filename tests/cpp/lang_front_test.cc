#include <gtest/gtest.h>

#include "lang/compile.h"

TEST(Smoke, prints) {
  using namespace onepass;
  std::int64_t ids[8] = {};
  TensorView view(ids, DType::int64, {2, 4}), one(ids, DType::int64, {8});
  std::vector<Argument> args{{"ids", view}, {"n", one}, {"w", std::int64_t{5}}};
  for (const char* t : {"full", "causal", "window(255, 0)", "window(-1, w)", "chunked(64)", "prefix(n)", "prefix(3)", "document(ids)", "document(n)", "sink_window(4, 10)", "kk", "q < k <= q + 5 & !(k == 3)", "chunked_causal(5)","document(w)", "q // 0", "k + true < 3", "prefix(ids)", "causall", "windw(3,4)", "exp(1) < 2", "s < 2", "causal()", "window(1)", "q && k", "((q < 1)", "k @ 3", "9999999999999999999 < q", "", "q = k", "softcap(q, 3)", "q", "ids[q]< 3", "ids[q,0.5]<3", "idss[q,k]<3"}) {
    auto p = lang::compile(t, lang::Kind::mask, args);
    std::printf("%s\n    -> %s\n", t, p.ok() ? lang::to_text(p.value()).c_str() : p.status().message.c_str());
  }
}
