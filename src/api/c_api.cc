// The C edge: structs in, codes out, no exception crosses.
#include <exception>
#include <new>
#include <string>

#include "api/c_structs.h"

namespace onepass {
namespace {

thread_local std::string last_error;

onepass_code failed(onepass_code code, const char* message) {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return code;
}

/// Runs `body`; whatever it throws becomes a code and a message.
template <class Body>
onepass_code guarded(Body body) {
  try {
    body();
    return ONEPASS_OK;
  } catch (const Error& error) {
    return failed(static_cast<onepass_code>(error.code), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ONEPASS_RUNTIME_ERROR,
                  "memory: none left for this call; smaller sizes fit; free memory or use them");
  } catch (const std::exception& error) {
    return failed(ONEPASS_RUNTIME_ERROR, error.what());
  }
}

/// A plan as the caller's struct.
template <class MakePlan>
void give(onepass_plan_info* info, const MakePlan& make_plan) {
  if (info == nullptr || info->size < sizeof(onepass_plan_info)) {
    throw Error(
        Status::invalid("info: null or too small; an onepass_plan_info is needed; fill it "
                        "with onepass_plan_info_init"));
  }
  const Plan made = make_plan();
  info->kernel[made.kernel.copy(info->kernel, sizeof info->kernel - 1)] = '\0';
  info->tile_rows = made.tile.rows;
  info->tile_keys = made.tile.keys;
  info->splits = made.splits;
  info->workspace_bytes = made.workspace_bytes;
  info->threads = made.threads;
}

}  // namespace
}  // namespace onepass

onepass_code onepass_attention(const onepass_tensor* q, const onepass_tensor* k,
                               const onepass_tensor* v, const onepass_tensor* o,
                               const onepass_options* options, const onepass_exec* exec) {
  using namespace onepass;
  return guarded([&] {
    attention(view_of("q", q), view_of("k", k), view_of("v", v), view_of("o", o),
              attention_of(options), exec_of(exec));
  });
}

onepass_code onepass_plan(const onepass_tensor* q, const onepass_tensor* k, const onepass_tensor* v,
                          const onepass_tensor* o, const onepass_options* options,
                          std::int32_t threads, onepass_plan_info* info) {
  using namespace onepass;
  return guarded([&] {
    give(info, [&] {
      return plan(view_of("q", q), view_of("k", k), view_of("v", v), view_of("o", o),
                  attention_of(options), threads);
    });
  });
}

onepass_code onepass_plan_backward(const onepass_tensor* q, const onepass_tensor* k,
                                   const onepass_tensor* v, const onepass_backward* backward,
                                   const onepass_options* options, std::int32_t threads,
                                   onepass_plan_info* info) {
  using namespace onepass;
  return guarded([&] {
    give(info, [&] {
      return plan_backward(view_of("q", q), view_of("k", k), view_of("v", v), backward_of(backward),
                           attention_of(options), threads);
    });
  });
}

onepass_code onepass_plan_kvcache(const onepass_tensor* q, const onepass_kv_cache* cache,
                                  const onepass_tensor* o, const onepass_options* options,
                                  std::int32_t threads, onepass_plan_info* info) {
  using namespace onepass;
  return guarded([&] {
    give(info, [&] {
      return plan(view_of("q", q), kv_cache_of(cache), view_of("o", o), attention_of(options),
                  threads);
    });
  });
}

onepass_code onepass_merge(const onepass_tensor* o, const onepass_tensor* lse,
                           const onepass_tensor* o_other, const onepass_tensor* lse_other,
                           const onepass_exec* exec) {
  using namespace onepass;
  return guarded([&] {
    merge(view_of("o", o), view_of("lse", lse), view_of("o_other", o_other),
          view_of("lse_other", lse_other), exec_of(exec));
  });
}

onepass_code onepass_attention_backward(const onepass_tensor* q, const onepass_tensor* k,
                                        const onepass_tensor* v, const onepass_backward* backward,
                                        const onepass_options* options, const onepass_exec* exec) {
  using namespace onepass;
  return guarded([&] {
    attention_backward(view_of("q", q), view_of("k", k), view_of("v", v), backward_of(backward),
                       attention_of(options), exec_of(exec));
  });
}

onepass_code onepass_attention_kvcache(const onepass_tensor* q, const onepass_kv_cache* cache,
                                       const onepass_tensor* o, const onepass_options* options,
                                       const onepass_exec* exec) {
  using namespace onepass;
  return guarded([&] {
    attention_kvcache(view_of("q", q), kv_cache_of(cache), view_of("o", o), attention_of(options),
                      exec_of(exec));
  });
}

onepass_code onepass_dropout_mask(const onepass_tensor* mask, const onepass_options* options) {
  using namespace onepass;
  return guarded([&] { dropout_mask(view_of("mask", mask), attention_of(options).dropout); });
}

const char* onepass_last_error(void) { return onepass::last_error.c_str(); }

const char* onepass_version(void) { return onepass::version(); }
