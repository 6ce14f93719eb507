// The scalar steps: what does not vary with the key. Compiled once; its arithmetic is that of the
// lanes (evaluate_ops.inl), integers in 64 bits (where lanes have 32, every value fits both).
#include "lang/machine.h"

namespace onepass::lang {
namespace {

constexpr bool fused_multiply_add = false;

#include "lang/evaluate_math.inl"
#include "lang/evaluate_ops.inl"

std::int64_t name_value(const Machine& machine, Name name, std::int64_t row) {
  const Scope& scope = machine.scope;
  switch (name) {
    case Name::q:
      return row + scope.q_start;
    case Name::row:
      return row;
    case Name::token_q:
      return row + scope.token_q_start;
    case Name::b:
      return scope.b;
    case Name::h:
      return scope.h;
    case Name::h_kv:
      return scope.h_kv;
    case Name::s_q:
      return scope.s_q;
    case Name::s_kv:
      return scope.s_kv;
    default:  // names of the key side and the logit are vectors
      return 0;
  }
}

template <class Real>
Scalar load(const Machine& machine, const Step& step) {
  const Source& source = machine.source[step.array];
  if (source.empty) return {};
  std::int64_t offset = 0;
  for (int dim = 0; dim < source.rank; ++dim) {
    const std::int64_t index = machine.scalar[step.operand[dim]].integer;
    if (source.shape[dim] == 1) continue;
    if (index < 0 || index >= source.shape[dim]) return {};
    offset += index * source.strides[dim];
  }
  const auto real = [&](auto type) {
    return static_cast<Real>(as_real(static_cast<const decltype(type)*>(source.data)[offset]));
  };
  const auto integer = [&](auto type) {
    return static_cast<std::int64_t>(static_cast<const decltype(type)*>(source.data)[offset]);
  };
  switch (source.dtype) {
    case DType::float64:
      return {0, real(double{})};
    case DType::float32:
      return {0, real(float{})};
    case DType::bfloat16:
      return {0, real(Bfloat16{})};
    case DType::float16:
      return {0, real(Float16{})};
    case DType::int64:
      return {integer(std::int64_t{}), 0};
    case DType::int32:
      return {integer(std::int32_t{}), 0};
    case DType::uint8:
      return {integer(std::uint8_t{}), 0};
    case DType::boolean:
      return {integer(std::uint8_t{}) != 0, 0};
  }
  return {};
}

template <class Real>
class Scalars {
 public:
  Scalars(Machine& machine, const Step& step) : machine_(machine), step_(step) {}

  Scalar value(std::int64_t row) const {
    switch (step_.op) {
      case Op::constant:
      case Op::parameter:
        return operand_value();
      case Op::name:
        return {name_value(machine_, step_.name, row), 0};
      case Op::load:
        return load<Real>(machine_, step_);
      case Op::to_real:
        return {0, static_cast<Real>(operand(0).integer)};
      case Op::negate:
        return unary<Negate>();
      case Op::add:
        return binary<Add>();
      case Op::subtract:
        return binary<Subtract>();
      case Op::multiply:
        return binary<Multiply>();
      case Op::divide:
        return Scalar{0, Divide::of(real_operand(0), real_operand(1))};
      case Op::floor_divide:
        return binary<FloorDivide>();
      case Op::modulo:
        return binary<Modulo>();
      case Op::logical_not:
        return {operand(0).integer ^ 1, 0};
      case Op::logical_and:
        return {operand(0).integer & operand(1).integer, 0};
      case Op::logical_or:
        return {operand(0).integer | operand(1).integer, 0};
      case Op::less:
        return comparison<Less>();
      case Op::less_equal:
        return comparison<LessEqual>();
      case Op::equal:
        return comparison<Equal>();
      case Op::not_equal:
        return comparison<NotEqual>();
      case Op::select:
        return operand(0).integer != 0 ? operand(1) : operand(2);
      case Op::absolute:
        return unary<Absolute>();
      case Op::minimum:
        return binary<Minimum>();
      case Op::maximum:
        return binary<Maximum>();
      case Op::floor:
        return Scalar{0, Floor::of(real_operand(0))};
      case Op::square_root:
        return Scalar{0, SquareRoot::of(real_operand(0))};
      case Op::exponential:
        return Scalar{0, Exponential::of(real_operand(0))};
      case Op::logarithm:
        return Scalar{0, Logarithm::of(real_operand(0))};
      case Op::hyperbolic_tangent:
        return Scalar{0, HyperbolicTangent::of(real_operand(0))};
    }
    return {};
  }

 private:
  const Scalar& operand(int i) const { return machine_.scalar[step_.operand[i]]; }
  Scalar operand_value() const { return machine_.scalar[&step_ - machine_.step]; }
  Real real_operand(int i) const { return static_cast<Real>(operand(i).real); }

  template <class Operation>
  Scalar unary() const {
    if (step_.type == Type::real) return {0, Operation::of(real_operand(0))};
    return {Operation::of(operand(0).integer), 0};
  }
  template <class Operation>
  Scalar binary() const {
    if (step_.type == Type::real) return {0, Operation::of(real_operand(0), real_operand(1))};
    return {Operation::of(operand(0).integer, operand(1).integer), 0};
  }
  template <class Operation>
  Scalar comparison() const {
    if (step_.operand_type == Type::real)
      return {Operation::of(real_operand(0), real_operand(1)), 0};
    return {Operation::of(operand(0).integer, operand(1).integer), 0};
  }

  Machine& machine_;
  const Step& step_;
};

template <class Real>
void run(Machine& machine, Level level, std::int64_t row) {
  const int at = static_cast<int>(level);
  for (std::int32_t i = machine.level_begin[at]; i < machine.level_begin[at + 1]; ++i) {
    const std::int32_t index = machine.order[i];
    machine.scalar[index] = Scalars<Real>(machine, machine.step[index]).value(row);
  }
}

}  // namespace

void run_scalars(Machine& machine, Level level, std::int64_t row) {
  if (machine.real64) {
    run<double>(machine, level, row);
  } else {
    run<float>(machine, level, row);
  }
}

}  // namespace onepass::lang
