// Text -> tree: every word gets its meaning; a call of a definition is replaced by its body.
#include <limits>
#include <map>
#include <stdexcept>

#include "reference/definitions.h"
#include "reference/expression.h"

namespace onepass::reference {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

bool reads_logit(const Tree& tree) {
  if (tree.op == Op::name && tree.field == nullptr) return true;
  for (const Tree& child : tree.children) {
    if (reads_logit(child)) return true;
  }
  return false;
}

Tree number(const Value& value) {
  Tree tree;
  tree.value = value;
  return tree;
}

Tree tree_of(const Argument& argument) {
  if (const auto* flag = std::get_if<bool>(&argument.value)) {
    return number({Type::boolean, *flag ? 1 : 0, 0.0});
  }
  if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) {
    return number({Type::integer, *integer, 0.0});
  }
  if (const auto* real = std::get_if<double>(&argument.value)) {
    return number({Type::real, 0, *real});
  }
  Tree tree;
  tree.op = Op::array;
  tree.array = &std::get<Array>(argument.value);
  return tree;
}

// Dims of an array that is not indexed yet; 0 for a value.
int dims(const Tree& tree) {
  const bool whole = tree.op == Op::array && tree.children.empty();
  return whole ? static_cast<int>(tree.array->shape.size()) : 0;
}

using Bindings = std::map<std::string, Tree>;

// Expands one expression. `expanding` holds the definitions that it is inside of.
class Binder {
 public:
  Binder(Kind kind, const std::vector<Argument>& arguments,
         const std::vector<Definition>& definitions)
      : kind_(kind), arguments_(arguments), definitions_(definitions) {}

  Tree value(const Syntax& syntax, const Bindings& bindings) {
    Tree tree = operand(syntax, bindings);
    if (dims(tree) > 0) refuse("an array needs one index for each dim");
    return tree;
  }

 private:
  // A value, or a whole array when the syntax is its bare name.
  Tree operand(const Syntax& syntax, const Bindings& bindings) {
    switch (syntax.kind) {
      case Syntax::Kind::number: {
        Tree tree = number(syntax.value);
        const double real = syntax.value.real;
        const bool zero = kind_ == Kind::mask ? static_cast<float>(real) == 0.0f : real == 0.0;
        tree.literal_zero = syntax.value.integer == 0 && zero;
        return tree;
      }
      case Syntax::Kind::word:
        return word(syntax.word, bindings);
      case Syntax::Kind::call:
        return call(syntax, bindings);
      case Syntax::Kind::index:
        return index(syntax, bindings);
      case Syntax::Kind::operation:
        break;
    }
    return operation(syntax.op, syntax, bindings);
  }

  Tree operation(Op op, const Syntax& syntax, const Bindings& bindings) {
    Tree tree;
    tree.op = op;
    for (const Syntax& child : syntax.children) tree.children.push_back(value(child, bindings));
    const bool divides = op == Op::divide || op == Op::floor_divide || op == Op::modulo;
    if (divides && tree.children[1].literal_zero) refuse("the divisor is 0");
    tree.literal_zero = op == Op::negate && tree.children[0].literal_zero;
    return tree;
  }

  Tree word(const std::string& name, const Bindings& bindings) {
    if (const auto bound = bindings.find(name); bound != bindings.end()) return bound->second;
    if (name == "true" || name == "false") return number({Type::boolean, name == "true", 0.0});
    if (name == "inf") return number({Type::real, 0, std::numeric_limits<double>::infinity()});
    if (name == "s" && kind_ == Kind::mask) refuse("a mask has no s");
    if (name == "s" || find_field(name)) {
      Tree tree;
      tree.op = Op::name;
      tree.field = find_field(name);
      return tree;
    }
    for (const Argument& argument : arguments_) {
      if (argument.name == name) return tree_of(argument);
    }
    return expand(name, {});
  }

  Tree index(const Syntax& syntax, const Bindings& bindings) {
    Tree tree = word(syntax.word, bindings);
    if (dims(tree) == 0) refuse("only an array takes an index");
    if (tree.array->shape.size() != syntax.children.size()) refuse("one index for each dim");
    for (const Syntax& child : syntax.children) {
      tree.children.push_back(value(child, bindings));
      if (reads_logit(tree.children.back())) refuse("an index may not use s");
    }
    return tree;
  }

  Tree call(const Syntax& syntax, const Bindings& bindings) {
    if (const Function* function = find_function(syntax.word)) {
      if (syntax.children.size() != function->operands) refuse("wrong number of operands");
      if (!function->in_masks && kind_ == Kind::mask) refuse(syntax.word + " in a mask");
      return operation(function->op, syntax, bindings);
    }
    std::vector<Tree> operands;
    for (const Syntax& child : syntax.children) operands.push_back(operand(child, bindings));
    return expand(syntax.word, operands);
  }

  Tree expand(const std::string& name, const std::vector<Tree>& operands) {
    for (const Definition& definition : definitions_) {
      if (definition.name != name || definition.parameters.size() != operands.size()) continue;
      bool fits = true;
      Bindings bindings;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        fits = fits && definition.parameters[i].takes(dims(operands[i]));
        bindings[definition.parameters[i].name] = operands[i];
      }
      if (!fits) continue;
      for (const Definition* outer : expanding_) {
        if (outer == &definition) refuse(name + " uses itself");
      }
      expanding_.push_back(&definition);
      Tree tree = value(definition.body, bindings);
      expanding_.pop_back();
      tree.literal_zero = false;
      return tree;
    }
    refuse("not a name here: " + name);
  }

  Kind kind_;
  const std::vector<Argument>& arguments_;
  const std::vector<Definition>& definitions_;
  std::vector<const Definition*> expanding_;
};

}  // namespace

Tree parse(std::string_view text, Kind kind, const std::vector<Argument>& arguments,
           std::string_view definitions) {
  for (const Argument& argument : arguments) {
    if (is_reserved(argument.name)) refuse(argument.name + " has a meaning of its own");
  }
  const std::vector<Definition> all = all_definitions(definitions, arguments);
  return Binder(kind, arguments, all).value(parse_syntax(text), {});
}

}  // namespace onepass::reference
