// One loop over lanes per operation. Part of evaluate.inl.
//
// Every loop runs over whole blocks, so that the compiler leaves no remainder loop behind; lanes
// past the row's end hold what they hold and are never copied out. An output may be the logit it
// was computed from (same lanes, same width), never another operand: no dependence between
// iterations.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // 64-bit division stays scalar
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
  for (int block = 0; block < blocks; ++block) {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < lane_block; ++i) out[i] = Operation::of(a[i]);
    a += lane_block;
    out += lane_block;
  }
}

template <class Operation, class T, class Out>
[[gnu::noinline]] void binary_loop(Input<T> a, Input<T> b, Out* out, int blocks) {
  const T* a_lanes = a.lanes;
  const T* b_lanes = b.lanes;
  const T a_value = a.value;
  const T b_value = b.value;
  if (a_lanes == nullptr) {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) out[i] = Operation::of(a_value, b_lanes[i]);
      b_lanes += lane_block;
      out += lane_block;
    }
  } else if (b_lanes == nullptr) {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) out[i] = Operation::of(a_lanes[i], b_value);
      a_lanes += lane_block;
      out += lane_block;
    }
  } else {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) out[i] = Operation::of(a_lanes[i], b_lanes[i]);
      a_lanes += lane_block;
      b_lanes += lane_block;
      out += lane_block;
    }
  }
}

template <class T>
[[gnu::noinline]] void fill_loop(T value, T* out, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < lane_block; ++i) out[i] = value;
    out += lane_block;
  }
}

template <class T>
[[gnu::noinline]] void iota_loop(std::int64_t first, T* out, int blocks) {
  auto start = static_cast<typename Lane<T>::Unsigned>(first);
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < lane_block; ++i) {
      out[i] = static_cast<T>(start + static_cast<typename Lane<T>::Unsigned>(i));
    }
    start += lane_block;
    out += lane_block;
  }
}

template <class T, class Out>
[[gnu::noinline]] void convert_loop(const T* a, Out* out, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    ONEPASS_INDEPENDENT_LANES
    for (int i = 0; i < lane_block; ++i) out[i] = static_cast<Out>(a[i]);
    a += lane_block;
    out += lane_block;
  }
}

// Selection by lanes; `yes` and `no` are read before the choice, so that no branch is left.
template <class T>
[[gnu::noinline]] void select_loop(const std::uint8_t* condition, Input<T> yes, Input<T> no, T* out,
                                   int blocks) {
  const T* yes_lanes = yes.lanes;
  const T* no_lanes = no.lanes;
  const T yes_value = yes.value;
  const T no_value = no.value;
  if (yes_lanes != nullptr && no_lanes != nullptr) {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) {
        const T a = yes_lanes[i], b = no_lanes[i];
        out[i] = condition[i] != 0 ? a : b;
      }
      condition += lane_block;
      yes_lanes += lane_block;
      no_lanes += lane_block;
      out += lane_block;
    }
  } else if (yes_lanes != nullptr) {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) {
        const T a = yes_lanes[i];
        out[i] = condition[i] != 0 ? a : no_value;
      }
      condition += lane_block;
      yes_lanes += lane_block;
      out += lane_block;
    }
  } else if (no_lanes != nullptr) {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) {
        const T b = no_lanes[i];
        out[i] = condition[i] != 0 ? yes_value : b;
      }
      condition += lane_block;
      no_lanes += lane_block;
      out += lane_block;
    }
  } else {
    for (int block = 0; block < blocks; ++block) {
      ONEPASS_INDEPENDENT_LANES
      for (int i = 0; i < lane_block; ++i) out[i] = condition[i] != 0 ? yes_value : no_value;
      condition += lane_block;
      out += lane_block;
    }
  }
}
