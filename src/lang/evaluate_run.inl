// The evaluator: interprets the laid-out program, a loop over lanes per step. Part of evaluate.inl.

#include "lang/evaluate_math.inl"
#include "lang/evaluate_ops.inl"

#include "lang/evaluate_loops.inl"

#include "lang/evaluate_load.inl"

// One pass over the steps of a level.
template <class Real, class Int>
struct Pass {
  const Machine& machine;
  const void* logit;  // read by `s`
  void* out;          // takes the root's lanes instead of its slot, unless null
  int offset;         // lane of begin_keys that is lane 0 here
  int count;
  int blocks;

  template <class T>
  const T* lanes(std::int32_t index) const {
    const Step& step = machine.step[index];
    if (step.slot < 0) return static_cast<const T*>(logit);
    const void* slot = machine.slot_memory + step.slot * slot_bytes;
    return static_cast<const T*>(slot) + (step.level == Level::keys ? offset : 0);
  }
  template <class T>
  T* output(std::int32_t index) const {
    if (index == machine.root && out != nullptr) return static_cast<T*>(out);
    void* slot = machine.slot_memory + machine.step[index].slot * slot_bytes;
    return static_cast<T*>(slot);
  }
  template <class T>
  T scalar(std::int32_t index) const {
    const Scalar& value = machine.scalar[index];
    if constexpr (Lane<T>::real) {
      return static_cast<T>(value.real);
    } else {
      return static_cast<T>(value.integer);
    }
  }
  template <class T>
  Input<T> input(std::int32_t index) const {
    if (machine.step[index].vector) return {lanes<T>(index), T(0)};
    return {nullptr, scalar<T>(index)};
  }

  template <class Operation, class T>
  void unary(const Step& step, std::int32_t index) const {
    unary_loop<Operation>(lanes<T>(step.operand[0]), output<T>(index), blocks);
  }
  template <class Operation>
  void unary_number(const Step& step, std::int32_t index) const {
    if (step.type == Type::real) {
      unary<Operation, Real>(step, index);
    } else {
      unary<Operation, Int>(step, index);
    }
  }
  template <class Operation, class T, class Out = T>
  void binary(const Step& step, std::int32_t index) const {
    binary_loop<Operation>(input<T>(step.operand[0]), input<T>(step.operand[1]), output<Out>(index),
                           blocks);
  }
  template <class Operation>
  void binary_number(const Step& step, std::int32_t index) const {
    if (step.type == Type::real) {
      binary<Operation, Real>(step, index);
    } else {
      binary<Operation, Int>(step, index);
    }
  }
  template <class Operation>
  void comparison(const Step& step, std::int32_t index) const {
    if (step.operand_type == Type::real) {
      binary<Operation, Real, std::uint8_t>(step, index);
    } else if (step.operand_type == Type::integer) {
      binary<Operation, Int, std::uint8_t>(step, index);
    } else {
      binary<Operation, std::uint8_t>(step, index);
    }
  }

  // A score may multiply by the reciprocal of what is the same for all keys; a mask may not.
  void divide(const Step& step, std::int32_t index) const {
    const Input<Real> divisor = input<Real>(step.operand[1]);
    const Real size = magnitude(divisor.value);
    if (machine.kind == Kind::mask || divisor.lanes != nullptr || !(size > Real(1e-30)) ||
        !(size < Real(1e30))) {
      return binary<Divide, Real>(step, index);
    }
    binary_loop<Multiply>(input<Real>(step.operand[0]), Input<Real>{nullptr, 1 / divisor.value},
                          output<Real>(index), blocks);
  }

  template <class T>
  void copy(std::int32_t from, T* to) const {
    const Input<T> source = input<T>(from);
    if (source.lanes == nullptr) return fill_loop(source.value, to, blocks);
    if (source.lanes != to) convert_loop(source.lanes, to, blocks);
  }
  template <class T>
  void select(const Step& step, std::int32_t index) const {
    const std::int32_t condition = step.operand[0], yes = step.operand[1], no = step.operand[2];
    if (!machine.step[condition].vector) {
      return copy(machine.scalar[condition].integer != 0 ? yes : no, output<T>(index));
    }
    select_loop(lanes<std::uint8_t>(condition), input<T>(yes), input<T>(no), output<T>(index),
                blocks);
  }

  void name(const Step& step, std::int32_t index) const {
    std::int64_t first = machine.col_begin;
    if (step.name == Name::k) first += machine.scope.k_start;
    if (step.name == Name::token_k) first += machine.scope.token_k_start;
    if (step.slot >= 0) iota_loop(first, output<Int>(index), blocks);
  }

  bool linear_read(const Step& step, LinearRead& read) const {
    const Source& source = machine.source[step.array];
    read.end = source.empty ? 0 : count;
    for (int dim = 0; dim < source.rank; ++dim) {
      if (source.shape[dim] == 1) continue;
      const Input<Int> index = input<Int>(step.operand[dim]);
      std::int64_t start = index.value, pace = 0;
      if (index.lanes != nullptr) {
        start = index.lanes[0];
        pace = static_cast<std::int64_t>(index.lanes[1]) - start;
      } else {
        start = machine.scalar[step.operand[dim]].integer;
      }
      if (!narrow(read, start, pace, source.shape[dim], source.strides[dim])) return false;
    }
    return true;
  }

  template <class Element, class Out>
  void load_as(const Step& step, std::int32_t index) const {
    const Source& source = machine.source[step.array];
    Out* const to = output<Out>(index);
    LinearRead read;
    if (source.empty || (step.direct && linear_read(step, read))) {
      return read_linear<Element>(source.data, read, count, to);
    }
    for (int block = 0; block < blocks; ++block) {
      std::int64_t at[lane_block];
      std::uint8_t inside[lane_block];
      std::int64_t base = 0;
      bool good = true;
      for (int dim = 0; dim < source.rank; ++dim) {
        if (source.shape[dim] == 1 || machine.step[step.operand[dim]].vector) continue;
        const std::int64_t fixed = machine.scalar[step.operand[dim]].integer;
        good &= fixed >= 0 && fixed < source.shape[dim];
        base += fixed * source.strides[dim];
      }
      if (!good) {
        __builtin_memset(to + block * lane_block, 0, lane_block * sizeof(Out));
        continue;
      }
      for (int i = 0; i < lane_block; ++i) at[i] = base;
      for (int i = 0; i < lane_block; ++i) inside[i] = 1;
      for (int dim = 0; dim < source.rank; ++dim) {
        if (source.shape[dim] == 1 || !machine.step[step.operand[dim]].vector) continue;
        add_index(lanes<Int>(step.operand[dim]) + block * lane_block, source.shape[dim],
                  source.strides[dim], at, inside);
      }
      read_gather<Element>(source.data, at, inside, to + block * lane_block);
    }
  }
  void load(const Step& step, std::int32_t index) const {
    switch (machine.source[step.array].dtype) {
      case DType::float64:
        return load_as<double, Real>(step, index);
      case DType::float32:
        return load_as<float, Real>(step, index);
      case DType::bfloat16:
        return load_as<Bfloat16, Real>(step, index);
      case DType::float16:
        return load_as<Float16, Real>(step, index);
      case DType::int64:
        return load_as<std::int64_t, Int>(step, index);
      case DType::int32:
        return load_as<std::int32_t, Int>(step, index);
      case DType::uint8:
        return load_as<std::uint8_t, Int>(step, index);
      case DType::boolean:
        load_as<std::uint8_t, std::uint8_t>(step, index);
        return binary_loop<NotEqual>(Input<std::uint8_t>{output<std::uint8_t>(index), 0},
                                     Input<std::uint8_t>{nullptr, 0}, output<std::uint8_t>(index),
                                     blocks);
    }
  }

  void run(std::int32_t index) const {
    const Step& step = machine.step[index];
    switch (step.op) {
      case Op::constant:
      case Op::parameter:
        return;  // never vectors
      case Op::name:
        return name(step, index);
      case Op::load:
        return load(step, index);
      case Op::to_real:
        return convert_loop(lanes<Int>(step.operand[0]), output<Real>(index), blocks);
      case Op::negate:
        return unary_number<Negate>(step, index);
      case Op::add:
        return binary_number<Add>(step, index);
      case Op::subtract:
        return binary_number<Subtract>(step, index);
      case Op::multiply:
        return binary_number<Multiply>(step, index);
      case Op::divide:
        return divide(step, index);
      case Op::floor_divide:
        return binary_number<FloorDivide>(step, index);
      case Op::modulo:
        return binary_number<Modulo>(step, index);
      case Op::logical_not:
        return unary<LogicalNot, std::uint8_t>(step, index);
      case Op::logical_and:
        return binary<LogicalAnd, std::uint8_t>(step, index);
      case Op::logical_or:
        return binary<LogicalOr, std::uint8_t>(step, index);
      case Op::less:
        return comparison<Less>(step, index);
      case Op::less_equal:
        return comparison<LessEqual>(step, index);
      case Op::equal:
        return comparison<Equal>(step, index);
      case Op::not_equal:
        return comparison<NotEqual>(step, index);
      case Op::select:
        if (step.type == Type::real) return select<Real>(step, index);
        if (step.type == Type::integer) return select<Int>(step, index);
        return select<std::uint8_t>(step, index);
      case Op::absolute:
        return unary_number<Absolute>(step, index);
      case Op::minimum:
        return binary_number<Minimum>(step, index);
      case Op::maximum:
        return binary_number<Maximum>(step, index);
      case Op::floor:
        return unary<Floor, Real>(step, index);
      case Op::square_root:
        return unary<SquareRoot, Real>(step, index);
      case Op::exponential:
        return unary<Exponential, Real>(step, index);
      case Op::logarithm:
        return unary<Logarithm, Real>(step, index);
      case Op::hyperbolic_tangent:
        return unary<HyperbolicTangent, Real>(step, index);
    }
  }

  void run_level(Level level) const {
    const int at = static_cast<int>(level);
    for (std::int32_t i = machine.level_begin[at]; i < machine.level_begin[at + 1]; ++i) {
      run(machine.order[i]);
    }
  }
};

inline int whole_blocks(int count) { return (count + lane_block - 1) / lane_block; }

template <class Real>
void begin_keys_of(Machine& machine, int count) {
  const int blocks = whole_blocks(count);
  if (machine.int32) {
    Pass<Real, std::int32_t>{machine, nullptr, nullptr, 0, count, blocks}.run_level(Level::keys);
  } else {
    Pass<Real, std::int64_t>{machine, nullptr, nullptr, 0, count, blocks}.run_level(Level::keys);
  }
}

// Evaluates the root over whole blocks: `logit` and `out` have room for them.
template <class Real, class Int, class Out>
void run_blocks(Machine& machine, int offset, int count, const void* logit, Out* out) {
  const Pass<Real, Int> pass{machine, logit, out, offset, count, whole_blocks(count)};
  const Step& root = machine.step[machine.root];
  if (root.level == Level::pair && root.op != Op::name) {
    pass.run_level(Level::pair);
  } else {
    pass.template copy<Out>(machine.root, out);
  }
}

// The lanes of a last, unfinished block go through two slots that end on a whole one.
template <class Real, class Out>
void run_row(Machine& machine, std::int64_t row, int offset, int count, const Real* logit,
             Out* out) {
  if (count <= 0) return;
  const int row_level = static_cast<int>(Level::row);
  if (machine.level_begin[row_level] < machine.level_begin[row_level + 1]) {
    run_scalars(machine, Level::row, row);
  }
  const bool whole = count % lane_block == 0;
  char* const spare = machine.slot_memory + machine.slots * slot_bytes;
  const void* from = logit;
  if (!whole && logit != nullptr) {
    from = __builtin_memcpy(spare, logit, static_cast<std::size_t>(count) * sizeof(Real));
  }
  Out* const to = whole ? out : reinterpret_cast<Out*>(spare + slot_bytes);
  if (machine.int32) {
    run_blocks<Real, std::int32_t>(machine, offset, count, from, to);
  } else {
    run_blocks<Real, std::int64_t>(machine, offset, count, from, to);
  }
  if (!whole) __builtin_memcpy(out, to, static_cast<std::size_t>(count) * sizeof(Out));
}

template <class Real>
void Evaluator<Real>::begin_keys(std::int64_t col_begin, int count) {
  machine_->col_begin = col_begin;
  if (machine_->kind == Kind::mask) {
    begin_keys_of<float>(*machine_, count);
  } else {
    begin_keys_of<Real>(*machine_, count);
  }
}

template <class Real>
void Evaluator<Real>::mask_row(std::int64_t row, int offset, int count, std::uint8_t* visible) {
  run_row<float>(*machine_, row, offset, count, static_cast<const float*>(nullptr), visible);
}

template <class Real>
void Evaluator<Real>::value_row(std::int64_t row, int offset, int count, const Real* s, Real* out) {
  run_row(*machine_, row, offset, count, s, out);
}

#undef ONEPASS_INDEPENDENT_LANES
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
