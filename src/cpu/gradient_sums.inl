// A row's normaliser in two numbers, and sum P dP: lse = m + ln l says it in one, whose last digit
// is worth more than the weights where m is large.

/// From here on lse's rounding may move every weight of its row by 2^-19 and more.
inline constexpr double large_lse = 32;

struct RowSums {
  double most = -__builtin_huge_val();  // m: the largest logit so far
  double sum = 0.0;                     // sum e^(S - m)
  double product = 0.0;                 // sum e^(S - m) dP
  double size = 0.0;                    // sum e^(S - m) |dP|

  void raise(double to) {
    if (!(to > most)) return;
    const double alpha = sum == 0.0 ? 0.0 : __builtin_exp(most - to);
    sum *= alpha;
    product *= alpha;
    size *= alpha;
    most = to;
  }

  /// The keys seen are all that `lse` counts: the two differ by their rounding alone. The lse of
  /// merged parts counts keys that are not here.
  bool are_all_of(double lse, double relative, double absolute) const {
    const double apart = most + __builtin_log(sum) - lse, size = lse < 0 ? -lse : lse;
    const double allowed = relative * size + absolute;
    return -allowed <= apart && apart <= allowed;
  }
};
