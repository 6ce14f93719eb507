// Declaration of the evaluator. Included by evaluate.h in onepass::lang and by evaluate.inl in the
// namespace of an instruction set.

/// Evaluates one program for one (sequence, head). Real (float or double) is the arithmetic of
/// scores; masks always compute in float32. Order of calls: begin_keys, then rows of these keys,
/// and so on.
template <class Real>
class Evaluator {
 public:
  /// `int32`: as lang::fits_int32 says for this scope. `scratch`: evaluator_scratch_bytes(program),
  /// 64-byte aligned, in use for as long as the evaluator is. The program must outlive it too.
  Evaluator(const Program& program, const Scope& scope, bool int32, void* scratch)
      : machine_(prepare_machine(program, scope, int32, sizeof(Real) == 8, scratch)) {}

  /// Chooses columns [col_begin, col_begin + count), count <= max_keys, and computes what depends
  /// on the key alone.
  void begin_keys(std::int64_t col_begin, int count);

  /// visible[i] = 1 if the mask shows column col_begin + offset + i to this row, else 0; i < count.
  void mask_row(std::int64_t row, int offset, int count, std::uint8_t* visible);

  /// s[i]: logit of column col_begin + offset + i in, new logit out; i < count.
  void score_row(std::int64_t row, int offset, int count, Real* s) {
    value_row(row, offset, count, s, s);
  }

  /// The same into another buffer; out may be s.
  void value_row(std::int64_t row, int offset, int count, const Real* s, Real* out);

 private:
  Machine* machine_;
};
