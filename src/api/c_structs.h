// The C API's structs read as the library's own.
#pragma once

#include "onepass/onepass.h"
#include "onepass/onepass_c.h"

namespace onepass {

/// These throw Error, which names the argument; a null struct is a struct of defaults.
TensorView view_of(const char* argument, const onepass_tensor* tensor);
Attention attention_of(const onepass_options* options);
Backward backward_of(const onepass_backward* backward);
KvCache kv_cache_of(const onepass_kv_cache* cache);
Exec exec_of(const onepass_exec* exec);

}  // namespace onepass
