// The functions of evaluate_math.inl in the including namespace, as one type to hand around.
#include "lang/evaluate_math.inl"

struct Functions {
  template <class Real>
  static Real exp(Real x) {
    return exp_of(x);
  }
  template <class Real>
  static Real log(Real x) {
    return log_of(x);
  }
  template <class Real>
  static Real tanh(Real x) {
    return tanh_of(x);
  }
  template <class Real>
  static Real floor(Real x) {
    return floor_of(x);
  }
};
