// One loop over lanes per operation. Part of evaluate.inl.
//
// Every loop runs over whole blocks, so that the compiler leaves no remainder loop behind; lanes
// past the row's end hold what they hold and are never copied out. An output may be the logit it
// was computed from (same lanes, same width), never another operand: no dependence between
// iterations.
#if defined(__clang__)
#define ONEPASS_INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define ONEPASS_INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

// An operand: its lanes, or one value for all of them.
template <class T>
struct Input {
  const T* lanes;  // null: `value`
  T value;
};

template <class Operation, class T, class Out>
[[gnu::noinline]] void unary_loop(const T* a, Out* out, int blocks) {
  ONEPASS_INDEPENDENT_LANES
  for (int i = 0; i < blocks * lane_block; ++i) out[i] = Operation::of(a[i]);
}

template <class Operation, class T, class Out>
[[gnu::noinline]] void binary_loop(Input<T> a, Input<T> b, Out* out, int blocks) {
  const T* const a_lanes = a.lanes;
  const T* const b_lanes = b.lanes;
  if (a_lanes == nullptr) {
    const T value = a.value;
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) out[i] = Operation::of(value, b_lanes[i]);
  } else if (b_lanes == nullptr) {
    const T value = b.value;
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) out[i] = Operation::of(a_lanes[i], value);
  } else {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) out[i] = Operation::of(a_lanes[i], b_lanes[i]);
  }
}

template <class T>
[[gnu::noinline]] void fill_loop(T value, T* out, int blocks) {
  for (int i = 0; i < blocks * lane_block; ++i) out[i] = value;
}

template <class T>
[[gnu::noinline]] void iota_loop(std::int64_t first, T* out, int blocks) {
  const auto start = static_cast<typename Lane<T>::Unsigned>(first);
  for (int i = 0; i < blocks * lane_block; ++i) {
    out[i] = static_cast<T>(start + static_cast<typename Lane<T>::Unsigned>(i));
  }
}

template <class T, class Out>
[[gnu::noinline]] void convert_loop(const T* a, Out* out, int blocks) {
  ONEPASS_INDEPENDENT_LANES
  for (int i = 0; i < blocks * lane_block; ++i) out[i] = static_cast<Out>(a[i]);
}

// Selection by lanes; `yes` and `no` are read before the choice, so that no branch is left.
template <class T>
[[gnu::noinline]] void select_loop(const std::uint8_t* condition, Input<T> yes, Input<T> no, T* out,
                                   int blocks) {
  const T* const yes_lanes = yes.lanes;
  const T* const no_lanes = no.lanes;
  const T yes_value = yes.value;
  const T no_value = no.value;
  if (yes_lanes != nullptr && no_lanes != nullptr) {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) {
      const T a = yes_lanes[i], b = no_lanes[i];
      out[i] = condition[i] != 0 ? a : b;
    }
  } else if (yes_lanes != nullptr) {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) {
      const T a = yes_lanes[i];
      out[i] = condition[i] != 0 ? a : no_value;
    }
  } else if (no_lanes != nullptr) {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) {
      const T b = no_lanes[i];
      out[i] = condition[i] != 0 ? yes_value : b;
    }
  } else {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < blocks * lane_block; ++i) out[i] = condition[i] != 0 ? yes_value : no_value;
  }
}
