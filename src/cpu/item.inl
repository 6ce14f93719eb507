// A work item: builds what the call's expressions need, then runs the query tile.

template <class F>
void run_score(QueryTile<F>& tile, const ForwardCall& call, const ScopeRecord* record,
               const lang::Classifier* classifier, Evaluator<float>* mask, std::byte* scratch) {
  if (!call.score) return tile.run(classifier, mask, nullptr);
  Evaluator<typename F::real> score(*call.score, call.problem->scope(tile.b(), tile.h()),
                                    record->score_int32, scratch + call.sizes.scratch.score);
  tile.run(classifier, mask, &score);
}

template <class F>
void run_item(const ForwardCall& call, std::int64_t item, int thread) {
  QueryTile<F> tile(call, item, thread);
  if (!call.mask && !call.score) return tile.run(nullptr, nullptr, nullptr);
  std::byte* scratch =
      call.workspace + call.sizes.scratch_offset + thread * call.sizes.scratch.bytes;
  const ScopeRecord* record = scope_record(call, tile.b(), tile.h());
  if (!call.mask) return run_score<F>(tile, call, record, nullptr, nullptr, scratch);
  const lang::Scope scope = call.problem->scope(tile.b(), tile.h());
  const lang::Classifier classifier(*call.mask, scope, record->summaries);
  Evaluator<float> mask(*call.mask, scope, record->mask_int32, scratch + call.sizes.scratch.mask);
  run_score<F>(tile, call, record, &classifier, &mask, scratch);
}

template <class F>
constexpr ForwardKernels forward_kernels_of() {
  return {{.real_bytes = sizeof(typename F::real),
           .unit_bytes = sizeof(typename F::unit),
           .unit_elements = F::unit_elements,
           .lanes = F::lanes,
           .panel_keys = F::block_vecs * F::lanes},
          pack_item<F>,
          run_item<F>,
          multiply_only<F>};
}
