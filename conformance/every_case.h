// Every case by its function; case.cc names them.
#pragma once

#include "conformance/case.h"

namespace onepass::conformance {

Outcome d01_empty_rows(const Settings& settings);
Outcome d02_late_first_key(const Settings& settings);
Outcome d03_causal_unequal_lengths(const Settings& settings);
Outcome d04_cache_tail(const Settings& settings);
Outcome d05_hidden_and_visible_nan(const Settings& settings);
Outcome d06_very_negative_logits(const Settings& settings);
Outcome d07_softcap_partial_tile(const Settings& settings);
Outcome d08_window_ends(const Settings& settings);
Outcome d09_alibi_one_token(const Settings& settings);
Outcome d09_alibi_in_a_cache(const Settings& settings);
Outcome d10_grouped_heads_few_queries(const Settings& settings);
Outcome d11_strides(const Settings& settings);
Outcome d12_layout_of_dout(const Settings& settings);
Outcome d13_any_head_dim(const Settings& settings);
Outcome d14_any_length(const Settings& settings);
Outcome d15_sizes_of_zero(const Settings& settings);
Outcome d16_packed_without_queries(const Settings& settings);
Outcome d17_chunks(const Settings& settings);
Outcome d17_no_keys(const Settings& settings);
Outcome d17_merge(const Settings& settings);
Outcome d18_one_query_many_keys(const Settings& settings);
Outcome d19_pages(const Settings& settings);
Outcome d20_one_key(const Settings& settings);
Outcome d23_dropout(const Settings& settings);
Outcome d24_very_negative_lse(const Settings& settings);
Outcome d25_append(const Settings& settings);
Outcome d26_without_a_mask(const Settings& settings);
Outcome d27_scale(const Settings& settings);
Outcome d29_neighbours(const Settings& settings);
Outcome d30_cache_refusals(const Settings& settings);
Outcome d30_refusals(const Settings& settings);
Outcome w01_llama3(const Settings& settings);
Outcome w02_gemma2(const Settings& settings);
Outcome w03_bert(const Settings& settings);
Outcome w04_vit(const Settings& settings);
Outcome w05_stable_diffusion(const Settings& settings);
Outcome w06_swin(const Settings& settings);
Outcome w07_packed_documents(const Settings& settings);
Outcome w08_gpt2_xl(const Settings& settings);
Outcome dropout_share(const Settings& settings);
Outcome random_sweep(const Settings& settings);

}  // namespace onepass::conformance
