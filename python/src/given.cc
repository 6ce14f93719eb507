#include "given.h"

#include <string>

#include "onepass/status.h"

namespace onepass::python {
namespace {

struct Elsewhere {
  const char* name;  // what other libraries call it
  const char* here;
};

constexpr Elsewhere elsewhere[] = {
    {"causal", "mask=\"causal\""},
    {"is_causal", "mask=\"causal\""},
    {"attn_mask", "mask=\"dense(m)\" or score=\"bias(s, m)\" with args={\"m\": array}"},
    {"attn_bias", "score=\"bias(s, m)\" with args={\"m\": array}"},
    {"window_size", "mask=\"window(left, right)\" with two numbers"},
    {"softcap", "score=\"softcap(s, c)\" with a number for c"},
    {"alibi_slopes", "score=\"alibi(s, slopes)\" with args={\"slopes\": array}"},
    {"softmax_scale", "scale="},
    {"dropout_p", "dropout="},
    {"return_softmax_lse", "return_lse=True"},
    {"cu_seqlens_q", "onepass.attention_varlen(...)"},
    {"cu_seqlens_k", "onepass.attention_varlen(...)"},
    {"seqused_k", "onepass.attention_varlen(...)"},
    {"cache_seqlens", "onepass.attention_kvcache(...)"},
    {"block_table", "onepass.attention_kvcache(...)"},
};

std::string advice(const std::string& name) {
  for (const Elsewhere& known : elsewhere) {
    if (name == known.name) return std::string("write ") + known.here;
  }
  return "see help(onepass)";
}

}  // namespace

Given::Given(const char* function, const std::vector<const char*>& names,
             const nb::args& positional, const nb::kwargs& keywords)
    : function_(std::string(function) + "()") {
  for (auto [name, value] : keywords) left_[name] = value;
  if (positional.size() > names.size()) {
    throw Error(Status::type_error(function_ + ": " + std::to_string(positional.size()) +
                                   " arguments by position; " + std::to_string(names.size()) +
                                   " are allowed; pass the others by name"));
  }
  auto name = names.begin();
  for (nb::handle value : positional) {
    if (left_.contains(*name)) {
      throw Error(Status::type_error(std::string(*name) + ": given twice to " + function_ +
                                     "; once is allowed; pass it by position or by name"));
    }
    left_[*name++] = value;
  }
}

nb::object Given::required(const char* name) {
  if (!left_.contains(name)) {
    throw Error(Status::type_error(std::string(name) + ": missing; " + function_ +
                                   " needs it; see help(onepass)"));
  }
  return optional(name);
}

nb::object Given::optional(const char* name) { return otherwise(name, nb::none()); }

nb::object Given::otherwise(const char* name, const nb::object& standard) {
  if (!left_.contains(name)) return standard;
  const nb::object value = left_[name];
  nb::del(left_[name]);
  return value;
}

void Given::end() const {
  for (auto [name, value] : left_) {
    const std::string unknown = nb::str(name).c_str();
    throw Error(Status::type_error(unknown + ": no argument of " + function_ +
                                   "; its own names are allowed; " + advice(unknown)));
  }
}

}  // namespace onepass::python
