// What pairs add to the gradients of arrays that the score reads: dS' (before the slope) times
// d score / d (element read), for each place in the score that reads one.

template <class F>
struct ArrayReader {
  using real = typename F::real;
  using vec = typename F::vec;

  Evaluator<real> factor;
  Evaluator<double> place;
  bool one_place;  // the same element for all keys of a row
  real* factors;   // [group_rows][tile_keys], of the six rows at hand
  ArraySum sum;    // where this work item adds
  ArrayReader* next;

  void begin_keys(std::int64_t key_begin, int keys) {
    factor.begin_keys(key_begin, keys);
    place.begin_keys(key_begin, keys);
  }

  /// Adds columns [from, from + count) of a row; pairs with dS' = 0 add nothing.
  void add_row(std::int64_t row, int from, int count, const real* ds, const real* factors_of_row) {
    double places[max_tile_keys];
    place.value_row(row, from, one_place ? 1 : count, nullptr, places);
    if (sum.doubles) {
      add_to(static_cast<double*>(sum.data), places, count, ds, factors_of_row);
    } else {
      add_to(static_cast<real*>(sum.data), places, count, ds, factors_of_row);
    }
  }

 private:
  template <class To>
  void add_to(To* to, const double* places, int count, const real* ds, const real* factors_of_row) {
    if (one_place) {
      if (places[0] >= 0) to[std::int64_t(places[0])] += row_sum(count, ds, factors_of_row);
      return;
    }
    bool dense = places[0] >= 0;
    for (int j = 1; j < count; ++j) dense &= places[j] == places[0] + j;
    if (dense) {
      To* first = to + std::int64_t(places[0]);
      for (int j = 0; j < count; ++j) {
        first[j] += ds[j] == 0 ? real{0} : ds[j] * factors_of_row[j];
      }
      return;
    }
    for (int j = 0; j < count; ++j) {
      if (ds[j] == 0 || places[j] < 0) continue;
      to[std::int64_t(places[j])] += ds[j] * factors_of_row[j];
    }
  }

  static double row_sum(int count, const real* ds, const real* factors_of_row) {
    vec sum{};
    int j = 0;
    for (; j + F::lanes <= count; j += F::lanes) {
      const vec x = F::load(ds + j);
      const auto nothing = x == vec{};
      sum += nothing ? vec{} : x * F::load(factors_of_row + j);
    }
    double total = F::reduce_add(sum);
    for (; j < count; ++j) total += ds[j] == 0 ? 0.0 : double(ds[j] * factors_of_row[j]);
    return total;
  }
};
