// The forward's calls.
#include "onepass/attention.h"

#include "api/call.h"
#include "api/repeated_call.h"
#include "onepass/plan.h"

namespace onepass {

void attention(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& o,
               const Attention& options, const Exec& exec) {
  run({q, k, v, o, nullptr, options}, exec);
}

Plan plan(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& o,
          const Attention& options, int threads) {
  return plan_for(value_or_throw(validate(q, k, v, o, options)), threads);
}

Plan prepare(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& o,
             const Attention& options, int threads) {
  return prepare_for(value_or_throw(validate(q, k, v, o, options)), threads);
}

const char* version() { return ONEPASS_VERSION; }

}  // namespace onepass
