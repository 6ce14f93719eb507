// A work item: one range of keys, tile by tile, each with what the call's expressions need.

/// The call's expressions for one head, as far as they are made.
template <class F>
struct Expressions {
  const ScopeRecord* record = nullptr;
  const lang::Classifier* classifier = nullptr;
  Evaluator<float>* mask = nullptr;
  Evaluator<typename F::real>*score = nullptr, *slope = nullptr;
  ArrayReader<F>* readers = nullptr;
};

/// Makes a reader for each term from `term` on, one frame each, then adds the head.
template <class F>
void add_read_head(KeyTile<F>& tile, std::int64_t member, const BackwardCall& call,
                   Expressions<F> has, std::int64_t term, std::byte* scratch) {
  if (term == call.term_count) {
    return tile.add_head(member, has.classifier, has.mask, has.score, has.slope, has.readers);
  }
  const ArrayTerm& terms = call.terms[term];
  const BackwardScratch& map = call.sizes.scratch;
  const lang::Scope scope = call.forward.problem->scope(tile.b(), tile.head(member));
  std::byte* code = scratch + map.term_code + 2 * term * map.term_code_bytes;
  auto* factors = reinterpret_cast<typename F::real*>(scratch + map.factors) +
                  term * group_rows * call.sizes.tile_keys;
  ArrayReader<F> reader{
      .factor = Evaluator<typename F::real>(terms.factor, scope, has.record->score_int32, code),
      .place = Evaluator<double>(terms.place, scope, false, code + map.term_code_bytes),
      .one_place = !varies_with_key(terms.place),
      .factors = factors,
      .sum = array_sum(call, terms.darg, tile.key_value_head(), tile.range()),
      .next = has.readers};
  has.readers = &reader;
  add_read_head<F>(tile, member, call, has, term + 1, scratch);
}

template <class F>
void add_scored_head(KeyTile<F>& tile, std::int64_t member, const BackwardCall& call,
                     Expressions<F> has, std::byte* scratch) {
  if (!call.forward.score) {
    return tile.add_head(member, has.classifier, has.mask, nullptr, nullptr, nullptr);
  }
  const lang::Scope scope = call.forward.problem->scope(tile.b(), tile.head(member));
  const BackwardScratch& map = call.sizes.scratch;
  const bool int32 = has.record->score_int32;
  Evaluator<typename F::real> score(*call.forward.score, scope, int32, scratch + map.score_code);
  Evaluator<typename F::real> slope(*call.slope, scope, int32, scratch + map.slope_code);
  has.score = &score, has.slope = &slope;
  add_read_head<F>(tile, member, call, has, tile.wants_sums() ? call.term_count : 0, scratch);
}

template <class F>
void add_head(KeyTile<F>& tile, std::int64_t member, const BackwardCall& call, std::byte* scratch) {
  const ForwardCall& forward = call.forward;
  if (!forward.mask && !forward.score) {
    return tile.add_head(member, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  Expressions<F> has;
  has.record = scope_record(forward, tile.b(), tile.head(member));
  if (!forward.mask) return add_scored_head<F>(tile, member, call, has, scratch);
  const lang::Scope scope = forward.problem->scope(tile.b(), tile.head(member));
  const lang::Classifier classifier(*forward.mask, scope, has.record->summaries);
  Evaluator<float> mask(*forward.mask, scope, has.record->mask_int32,
                        scratch + call.sizes.scratch.mask_code);
  has.classifier = &classifier, has.mask = &mask;
  add_scored_head<F>(tile, member, call, has, scratch);
}

template <class F>
void keys_item(const BackwardCall& call, std::int64_t item, int thread) {
  const BackwardSizes& sizes = call.sizes;
  const std::int64_t slot = item / sizes.ranges, range = item % sizes.ranges;
  KeyTile<F> tile(call, slot, range, thread);
  const std::int64_t range_keys =
      range_keys_of(*call.forward.problem, tile.at().s_kv, sizes.tile_keys);
  const std::int64_t first = range * range_keys;
  const std::int64_t end =
      first + range_keys < tile.at().s_kv ? first + range_keys : tile.at().s_kv;
  std::byte* scratch = call.forward.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  for (std::int64_t member = 0; member < call.forward.group; ++member) tile.clear_touched(member);
  for (std::int64_t key = first; key < end; key += sizes.tile_keys) {
    const std::int64_t left = end - key;
    tile.load_keys(key, static_cast<int>(left < sizes.tile_keys ? left : sizes.tile_keys));
    for (std::int64_t member = 0; member < call.forward.group; ++member) {
      add_head<F>(tile, member, call, scratch);
    }
    tile.store_gradients();
  }
}

template <class F>
constexpr BackwardKernels backward_kernels_of() {
  return {{.real_bytes = sizeof(typename F::real),
           .unit_bytes = sizeof(typename F::unit),
           .unit_elements = F::unit_elements,
           .lanes = F::lanes,
           .panel_keys = F::block_vecs * F::lanes},
          delta_item<F>,
          keys_item<F>,
          queries_item<F>};
}
