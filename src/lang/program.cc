#include "lang/program.h"

#include <algorithm>

namespace onepass::lang {

bool Program::trivial() const {
  const Node& node = top();
  if (kind == Kind::mask) return node.op == Op::constant && node.integer != 0;
  return node.op == Op::name && node.name == Name::s;
}

bool Program::names(std::string_view argument) const {
  return std::find(named.begin(), named.end(), argument) != named.end();
}

}  // namespace onepass::lang
