// A work item: one range of keys, tile by tile, each with what the call's expressions need.

template <class F>
void add_scored_head(KeyTile<F>& tile, std::int64_t member, const BackwardCall& call,
                     const ScopeRecord* record, const lang::Classifier* classifier,
                     Evaluator<float>* mask, std::byte* scratch) {
  if (!call.forward.score) return tile.add_head(member, classifier, mask, nullptr, nullptr);
  const lang::Scope scope = call.forward.problem->scope(tile.b(), tile.head(member));
  const BackwardScratch& map = call.sizes.scratch;
  Evaluator<typename F::real> score(*call.forward.score, scope, record->score_int32,
                                    scratch + map.score_code);
  Evaluator<typename F::real> slope(*call.slope, scope, record->score_int32,
                                    scratch + map.slope_code);
  tile.add_head(member, classifier, mask, &score, &slope);
}

template <class F>
void add_head(KeyTile<F>& tile, std::int64_t member, const BackwardCall& call, std::byte* scratch) {
  const ForwardCall& forward = call.forward;
  if (!forward.mask && !forward.score) {
    return tile.add_head(member, nullptr, nullptr, nullptr, nullptr);
  }
  const ScopeRecord* record = scope_record(forward, tile.b(), tile.head(member));
  if (!forward.mask) {
    return add_scored_head<F>(tile, member, call, record, nullptr, nullptr, scratch);
  }
  const lang::Scope scope = forward.problem->scope(tile.b(), tile.head(member));
  const lang::Classifier classifier(*forward.mask, scope, record->summaries);
  Evaluator<float> mask(*forward.mask, scope, record->mask_int32,
                        scratch + call.sizes.scratch.mask_code);
  add_scored_head<F>(tile, member, call, record, &classifier, &mask, scratch);
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
