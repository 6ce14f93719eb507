// Dropout on the weights of one row; docs/semantics.md has the contract. The factor 1 / (1 - p)
// waits until the row is finished, so that a dropped weight is only set to 0.

/// keep[j] for columns [col, col + count) of a row; col and count are multiples of 64.
inline void keep_row(const DropoutStream& stream, std::uint64_t threshold, std::int64_t row,
                     std::int64_t col, int count, std::uint8_t* keep) {
  constexpr int words = group_keys / 2;
  const bool upper = row & 8;
  for (int j = 0; j < count; j += group_keys) {
    std::uint32_t low[words], high[words];  // for columns with bit 3 clear and set
    for (int i = 0; i < words; ++i) {
      // Every other 8 columns: those with bit 3 clear.
      const PhiloxWords four = dropout_words(stream, row, col + j + (i / 8 * 16 + i % 8));
      low[i] = upper ? four.word[2] : four.word[0];
      high[i] = upper ? four.word[3] : four.word[1];
    }
    for (int i = 0; i < words; ++i) keep[j + i / 8 * 16 + i % 8] = low[i] >= threshold;
    for (int i = 0; i < words; ++i) keep[j + i / 8 * 16 + i % 8 + 8] = high[i] >= threshold;
  }
}

// Weights are reals, or 16-bit floats where they go in pairs; `first` and `count` in columns.
template <class F>
void drop_weights(typename F::real* row, int first, int count, const std::uint8_t* keep) {
  if constexpr (F::unit_elements == 2) {
    Brain* weights = reinterpret_cast<Brain*>(row) + first;
    for (int j = 0; j < count; ++j) weights[j].bits = keep[j] ? weights[j].bits : 0;
  } else {
    for (int j = 0; j < count; ++j) row[first + j] = keep[j] ? row[first + j] : 0;
  }
}
