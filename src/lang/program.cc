#include "lang/program.h"

namespace onepass::lang {

bool Program::trivial() const {
  const Node& node = top();
  if (kind == Kind::mask) return node.op == Op::constant && node.integer != 0;
  return node.op == Op::name && node.name == Name::s;
}

}  // namespace onepass::lang
