// attention_kvcache, plan_kvcache.
#include "docs.h"
#include "functions.h"
#include "onepass/onepass.h"
#include "options.h"
#include "outputs.h"
#include "stream.h"

namespace onepass::python {
namespace {

// A cache that is appended to is written.
Array read_cache(const char* name, Given& given, bool written) {
  const nb::object object = given.required(name);
  return written ? write_array(name, object) : read_array(name, object);
}

KvCache read_kv_cache(Given& given, Options& options) {
  KvCache cache;
  const auto optional = [&](const char* name) {
    return keep(read_optional(name, given.optional(name)), options);
  };
  cache.k_new = optional("k_new");
  cache.v_new = optional("v_new");
  const bool written = cache.k_new.given() || cache.v_new.given();
  cache.k = keep(read_cache("k_cache", given, written), options);
  cache.v = keep(read_cache("v_cache", given, written), options);
  cache.seqlens = keep(read_array("cache_seqlens", given.required("cache_seqlens")), options);
  cache.block_table = optional("block_table");
  cache.batch_idx = optional("cache_batch_idx");
  cache.rotary.cos = optional("rotary_cos");
  cache.rotary.sin = optional("rotary_sin");
  cache.rotary.interleaved =
      read_flag("rotary_interleaved", given.otherwise("rotary_interleaved", nb::bool_(false)));
  return cache;
}

// The library names a cache's fields by their struct.
constexpr Renamed names[] = {{"o", "out"},
                             {"cache.seqlens", "cache_seqlens"},
                             {"cache.block_table", "block_table"},
                             {"cache.batch_idx", "cache_batch_idx"},
                             {"cache.k_new", "k_new"},
                             {"cache.v_new", "v_new"},
                             {"cache.k", "k_cache"},
                             {"cache.v", "v_cache"},
                             {"rotary.cos", "rotary_cos"},
                             {"rotary.sin", "rotary_sin"}};

// One call with its arguments: the views for the library and the arrays that hold them.
struct Call {
  explicit Call(Given& given)
      : q(read_array("q", given.required("q"))),
        options(read_options(given)),
        cache(read_kv_cache(given, options)),
        outputs(given, q.view, cache.v) {
    given.end();
    options.attention.lse = outputs.lse();
  }

  Array q;
  Options options;
  KvCache cache;
  Outputs outputs;
};

Plan plan_kvcache(Given& given) {
  const Call call(given);
  return onepass::plan(call.q.view, call.cache, call.outputs.o(), call.options.attention,
                       call.options.threads);
}

nb::object attention_kvcache(Given& given) {
  Call call(given);
  call.outputs.make(call.q);
  call.options.attention.lse = call.outputs.lse();
  Exec exec;
  exec.threads = call.options.threads;
  exec.stream = read_stream(call.options.stream, call.q);
  {
    nb::gil_scoped_release released;
    onepass::attention_kvcache(call.q.view, call.cache, call.outputs.o(), call.options.attention,
                               exec);
  }
  return call.outputs.result(call.q);
}

}  // namespace

void bind_kvcache(nb::module_& m) {
  const std::vector<const char*> positional = {"q", "k_cache", "v_cache", "cache_seqlens"};
  const std::string call =
      std::string("(q: Any, k_cache: Any, v_cache: Any, cache_seqlens: Any, *, ") +
      cache_parameters + call_parameters + output_parameters + exec_parameters;
  bind(m, "attention_kvcache", positional, call + " -> Any", kvcache_doc,
       naming(names, attention_kvcache));
  bind(m, "plan_kvcache", positional, call + " -> Plan", plan_kvcache_doc,
       naming(names, plan_kvcache));
}

}  // namespace onepass::python
