#include "core/form_arrays.h"

#include <string>

#include "lang/words.h"

namespace onepass {
namespace {

// What a dim that is indexed by this name has to hold, where that is known.
struct Needed {
  bool known = false;
  bool at_least = false;
  std::int64_t size = 0;
};

Needed needed(const Problem& p, lang::Name name) {
  switch (name) {
    case lang::Name::b:
      return {true, false, p.b};
    case lang::Name::h:
      return {true, false, p.h_q};
    case lang::Name::row:
      return {!p.varlen(), true, p.s_q};
    case lang::Name::col:
      return {!p.varlen(), true, p.s_kv};
    default:
      return {};
  }
}

Status check_read(const Problem& p, const lang::FormRead& read) {
  for (int i = 0; i < read.rank; ++i) {
    const auto dim = static_cast<std::size_t>(i);
    const std::int64_t size = read.shape[dim];
    const Needed need = needed(p, read.index[dim]);
    if (!need.known || size == 1 || size == need.size || (need.at_least && size > need.size)) {
      continue;
    }
    return Status::invalid("args: '" + read.array + "' has size " + std::to_string(size) +
                           " in dim " + std::to_string(i) + ", which " + std::string(read.form) +
                           " indexes by " + std::string(lang::spelling(read.index[dim])) +
                           "; 1 or " + std::to_string(need.size) +
                           (need.at_least ? " or more are" : " is") +
                           " allowed; reshape it or write an expression of your own");
  }
  return {};
}

}  // namespace

Status check_form_arrays(const Problem& p) {
  for (const lang::Program* program : {&p.mask, &p.score}) {
    for (const lang::FormRead& read : program->form_reads) {
      if (Status s = check_read(p, read); !s.ok()) return s;
    }
  }
  return {};
}

}  // namespace onepass
