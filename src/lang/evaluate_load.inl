// Array reads along a row of keys. Part of evaluate.inl.
//
// Indices that are linear in the key (a constant, col, k + 3, ...) give one range of lanes inside
// the array, read without checks: contiguous if its stride is 1. All others gather, each lane
// checked.

inline std::int64_t floor_ratio(std::int64_t a, std::int64_t b) {
  return b == 1 ? a : floor_quotient(a, b);
}

// What a read sees: element `first + lane * stride` for lanes in [begin, end), 0 elsewhere.
struct LinearRead {
  std::int64_t first = 0;
  std::int64_t stride = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Index `start + step * lane` into a dim. False if the arithmetic could overflow.
inline bool narrow(LinearRead& read, std::int64_t start, std::int64_t step, std::int64_t shape,
                   std::int64_t stride) {
  constexpr std::int64_t limit = std::int64_t{1} << 44;
  if (start < -limit || start > limit || step < -limit || step > limit) return false;
  if (step == 0) {
    if (start < 0 || start >= shape) read.end = 0;
  } else {
    const std::int64_t low = step > 0 ? -start : start - (shape - 1);
    const std::int64_t high = step > 0 ? shape - 1 - start : start;
    const std::int64_t size = step > 0 ? step : -step;
    const std::int64_t begin = -floor_ratio(-low, size);
    const std::int64_t end = floor_ratio(high, size) + 1;
    if (begin > read.begin) read.begin = begin;
    if (end < read.end) read.end = end;
  }
  read.first += start * stride;
  read.stride += step * stride;
  return true;
}

template <class Out, class Element>
inline Out as_lane(Element element) {
  return static_cast<Out>(as_real(element));
}
template <class Out>
inline Out as_lane(std::int64_t element) {
  return static_cast<Out>(element);
}
template <class Out>
inline Out as_lane(std::int32_t element) {
  return static_cast<Out>(element);
}
template <class Out>
inline Out as_lane(std::uint8_t element) {
  return static_cast<Out>(element);
}

template <class Element, class Out>
[[gnu::noinline]] void read_linear(const void* data, const LinearRead& read, int count, Out* out) {
  const std::int64_t begin = read.begin < count ? read.begin : count;
  const std::int64_t end = read.end > begin ? read.end : begin;
  const std::int64_t length = end - begin;
  __builtin_memset(out, 0, static_cast<std::size_t>(begin) * sizeof(Out));
  __builtin_memset(out + end, 0, static_cast<std::size_t>(count - end) * sizeof(Out));
  if (length == 0) return;
  const Element* const from =
      static_cast<const Element*>(data) + (read.first + begin * read.stride);
  Out* const to = out + begin;
  if (read.stride == 1) {
    ONEPASS_INDEPENDENT_LANES
    for (std::int64_t i = 0; i < length; ++i) to[i] = as_lane<Out>(from[i]);
  } else {
    const std::int64_t stride = read.stride;
    ONEPASS_INDEPENDENT_LANES
    for (std::int64_t i = 0; i < length; ++i) to[i] = as_lane<Out>(from[i * stride]);
  }
}

// `offset` of lanes that are not inside is 0, an element that exists.
template <class Element, class Out>
[[gnu::noinline]] void read_gather(const void* data, const std::int64_t* offset,
                                   const std::uint8_t* inside, Out* out) {
  const Element* const from = static_cast<const Element*>(data);
  ONEPASS_INDEPENDENT_LANES
  for (int i = 0; i < lane_block; ++i) {
    const Out value = as_lane<Out>(from[offset[i]]);
    out[i] = inside[i] != 0 ? value : Out(0);
  }
}

// Adds one dim's part to the offsets of a block.
template <class Int>
[[gnu::noinline]] void add_index(const Int* index, std::int64_t shape, std::int64_t stride,
                                 std::int64_t* offset, std::uint8_t* inside) {
  ONEPASS_INDEPENDENT_LANES
  for (int i = 0; i < lane_block; ++i) {
    const std::int64_t at = index[i];
    const bool good = (at >= 0) & (at < shape);
    inside[i] &= good;
    offset[i] += (good ? at : 0) * stride;
  }
}
