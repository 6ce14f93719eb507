// The table of cases. The missing numbers concern a GPU.
#include "conformance/case.h"

#include "conformance/every_case.h"

namespace onepass::conformance {
namespace {

constexpr Case table[] = {
    {"D01.empty_rows", "rows with every key masked", d01_empty_rows},
    {"D02.late_first_key", "first key tiles invisible, later ones visible", d02_late_first_key},
    {"D03.causal_unequal_lengths", "causal with s_q != s_kv", d03_causal_unequal_lengths},
    {"D04.cache_tail", "NaN and inf in the unused tail of a cache", d04_cache_tail},
    {"D05.hidden_and_visible_nan", "NaN in a hidden and in a visible place",
     d05_hidden_and_visible_nan},
    {"D06.very_negative_logits", "finite logits far below any sentinel", d06_very_negative_logits},
    {"D07.softcap_partial_tile", "softcap with a partly filled key tile", d07_softcap_partial_tile},
    {"D08.window_ends", "window ends, -1, window with causal", d08_window_ends},
    {"D09.alibi_one_token", "ALiBi of one token equals the long run's last row",
     d09_alibi_one_token},
    {"D09.alibi_in_a_cache", "ALiBi counts the keys in use, not the capacity",
     d09_alibi_in_a_cache},
    {"D10.grouped_heads_few_queries", "grouped heads with few queries",
     d10_grouped_heads_few_queries},
    {"D11.strides", "every layout of q, k, v and o", d11_strides},
    {"D12.layout_of_dout", "dO and the gradients in every layout", d12_layout_of_dout},
    {"D13.any_head_dim", "head dims that fit no vector", d13_any_head_dim},
    {"D14.any_length", "lengths that fit no tile", d14_any_length},
    {"D15.sizes_of_zero", "empty batch, keys, queries, dims", d15_sizes_of_zero},
    {"D16.packed_without_queries", "packed sequences without queries or keys",
     d16_packed_without_queries},
    {"D17.chunks", "chunks of queries and keys add up to the whole", d17_chunks},
    {"D17.no_keys", "lse of a packed sequence without keys", d17_no_keys},
    {"D17.merge", "lse of empty rows and merging of parts", d17_merge},
    {"D18.one_query_many_keys", "splits and threads do not change a result",
     d18_one_query_many_keys},
    {"D19.pages", "pages partly filled, in no order", d19_pages},
    {"D20.one_key", "one key: o = v, dv = dO", d20_one_key},
    {"D23.dropout", "forward and backward drop the same weights", d23_dropout},
    {"D24.very_negative_lse", "gradients where lse is below -88.7", d24_very_negative_lse},
    {"D25.append", "new keys land in their slots, and only there", d25_append},
    {"D26.without_a_mask", "backward without a mask", d26_without_a_mask},
    {"D27.scale", "scale zero, negative, default", d27_scale},
    {"D29.neighbours", "a sequence beside others equals itself alone", d29_neighbours},
    {"D30.cache_refusals", "pages and lengths that must be refused", d30_cache_refusals},
    {"D30.refusals", "arguments that must be refused", d30_refusals},
    {"W01.llama3", "Llama-3-8B prefill and decode", w01_llama3},
    {"W02.gemma2", "Gemma-2-9B, softcap, window", w02_gemma2},
    {"W03.bert", "BERT-base, padded batch", w03_bert},
    {"W04.vit", "ViT-B/16 and L/16 at 224", w04_vit},
    {"W05.stable_diffusion", "Stable Diffusion v1, cross and self", w05_stable_diffusion},
    {"W06.swin", "Swin-B windows with bias, shifted", w06_swin},
    {"W07.packed_documents", "documents packed in one row", w07_packed_documents},
    {"W08.gpt2_xl", "GPT-2-XL-like inference", w08_gpt2_xl},
    {"dropout_share", "the kept share of 2^24 draws", dropout_share},
    {"random", "problems drawn from the seed", random_sweep},
};

}  // namespace

std::span<const Case> cases() { return table; }

}  // namespace onepass::conformance
