// The backward's calls.
#include "onepass/backward.h"

#include "api/call.h"
#include "api/repeated_call.h"
#include "core/backward.h"

namespace onepass {

void attention_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                        const Backward& backward, const Attention& options, const Exec& exec) {
  run({q, k, v, backward.o, &backward, options}, exec);
}

Plan plan_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                   const Backward& backward, const Attention& options, int threads) {
  return plan_for(value_or_throw(validate_backward(q, k, v, backward, options)), threads);
}

Plan prepare_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                      const Backward& backward, const Attention& options, int threads) {
  return prepare_for(value_or_throw(validate_backward(q, k, v, backward, options)), threads);
}

}  // namespace onepass
