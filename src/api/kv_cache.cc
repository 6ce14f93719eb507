// Attention over a cache of keys and values.
#include "onepass/kv_cache.h"

#include "api/call.h"
#include "core/kv_cache.h"

namespace onepass {

void attention_kvcache(const TensorView& q, const KvCache& cache, const TensorView& o,
                       const Attention& options, const Exec& exec) {
  run(value_or_throw(validate(q, cache, o, options)), exec);
}

Plan plan(const TensorView& q, const KvCache& cache, const TensorView& o, const Attention& options,
          int threads) {
  return plan_for(value_or_throw(validate(q, cache, o, options)), threads);
}

Plan prepare(const TensorView& q, const KvCache& cache, const TensorView& o,
             const Attention& options, int threads) {
  return prepare_for(value_or_throw(validate(q, cache, o, options)), threads);
}

}  // namespace onepass
