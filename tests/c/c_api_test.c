/* The C API from a C99 program. Prints what went wrong; exit code 1 then. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "onepass/onepass_c.h"

static int failures = 0;
#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      printf("line %d: %s; last error: %s\n", __LINE__, #condition, onepass_last_error()); \
      ++failures;                                                                          \
    }                                                                                      \
  } while (0)

enum { S = 6, H = 2, D = 4 };

static float q[S * H * D], k[S * H * D], v[S * H * D], o[S * H * D], lse[H * S];
static const int64_t shape[4] = {1, S, H, D};
static const int64_t lse_shape[3] = {1, H, S};

/* q = 0 and v = the key's index: o is the mean index of the visible keys. */
static void fill(void) {
  for (int j = 0; j < S; ++j) {
    for (int i = 0; i < H * D; ++i) v[j * H * D + i] = (float)j;
  }
  for (int i = 0; i < S * H * D; ++i) k[i] = 1.0f, o[i] = NAN;
}

static onepass_tensor tensor(void* data, onepass_dtype dtype, int32_t rank, const int64_t* dims) {
  onepass_tensor t;
  onepass_tensor_init(&t, data, dtype, rank, dims);
  return t;
}

/* q = k = 0, so every weight of S keys is 1 / S: dv is the mean of dout over the queries. */
static void check_backward(void) {
  static float zero[S * H * D], dout[S * H * D], dq[S * H * D], dk[S * H * D], dv[S * H * D];
  static float slopes[H] = {1.0f, 2.0f}, dslopes[H];
  static const int64_t heads[1] = {H};
  const onepass_tensor tz = tensor(zero, ONEPASS_FLOAT32, 4, shape);
  const onepass_tensor tv = tensor(v, ONEPASS_FLOAT32, 4, shape);
  onepass_backward backward;
  onepass_backward_init(&backward);
  backward.o = tensor(o, ONEPASS_FLOAT32, 4, shape);
  backward.lse = tensor(lse, ONEPASS_FLOAT32, 3, lse_shape);
  backward.dout = tensor(dout, ONEPASS_FLOAT32, 4, shape);
  backward.dq = tensor(dq, ONEPASS_FLOAT32, 4, shape);
  backward.dk = tensor(dk, ONEPASS_FLOAT32, 4, shape);
  backward.dv = tensor(dv, ONEPASS_FLOAT32, 4, shape);
  for (int i = 0; i < S * H * D; ++i) dout[i] = 3.0f, dv[i] = NAN;

  onepass_options options;
  onepass_options_init(&options);
  options.lse = backward.lse;
  CHECK(onepass_attention(&tz, &tz, &tv, &backward.o, &options, NULL) == ONEPASS_OK);
  CHECK(onepass_attention_backward(&tz, &tz, &tv, &backward, &options, NULL) == ONEPASS_OK);
  CHECK(fabsf(dv[0] - 3.0f) < 1e-5f && dq[0] == 0.0f && dk[5] == 0.0f);

  /* Every query's softmax moves with slopes[h]: d sum(dout o) = S D 3 (mean(j j) - mean(j)^2). */
  onepass_argument argument;
  onepass_argument_init(&argument, "m");
  argument.kind = ONEPASS_ARGUMENT_ARRAY;
  argument.array = tensor(slopes, ONEPASS_FLOAT32, 1, heads);
  onepass_argument_gradient gradient;
  onepass_argument_gradient_init(&gradient, "m");
  gradient.gradient = tensor(dslopes, ONEPASS_FLOAT32, 1, heads);
  options.score = "s + 0 * q + 1e-6 * m[h] * k";
  options.arguments = &argument;
  options.argument_count = 1;
  backward.argument_gradients = &gradient;
  backward.argument_gradient_count = 1;
  CHECK(onepass_attention(&tz, &tz, &tv, &backward.o, &options, NULL) == ONEPASS_OK);
  CHECK(onepass_attention_backward(&tz, &tz, &tv, &backward, &options, NULL) == ONEPASS_OK);
  const float variance = 55.0f / 6.0f - 6.25f;
  CHECK(fabsf(dslopes[1] - 1e-6f * S * D * 3 * variance) < 1e-8f);

  onepass_plan_info info;
  onepass_plan_info_init(&info);
  CHECK(onepass_plan_backward(&tz, &tz, &tv, &backward, &options, 1, &info) == ONEPASS_OK);
  CHECK(strncmp(info.kernel, "cpu.backward.", 13) == 0 && info.workspace_bytes > 0);

  backward.dout.shape[1] = S - 1;
  dq[0] = -7.0f;
  CHECK(onepass_attention_backward(&tz, &tz, &tv, &backward, &options, NULL) ==
        ONEPASS_INVALID_ARGUMENT);
  CHECK(strncmp(onepass_last_error(), "dout: ", 6) == 0 && dq[0] == -7.0f);
}

/* Two keys in a paged cache, one more appended: the mean of three values. */
static void check_kvcache(void) {
  enum { PAGES = 4, PAGE = 2 };
  static float keys[PAGES * PAGE * H * D], values[PAGES * PAGE * H * D];
  static float one_q[H * D], k_new[H * D], v_new[H * D], out[H * D];
  static const int64_t cache_shape[4] = {PAGES, PAGE, H, D}, one[4] = {1, 1, H, D};
  static const int64_t sequences[1] = {1}, table_shape[2] = {1, 2};
  static int32_t length[1] = {2}, table[2] = {3, 1};
  for (int i = 0; i < PAGES * PAGE * H * D; ++i) keys[i] = values[i] = NAN;
  for (int i = 0; i < 2 * H * D; ++i) {
    keys[3 * PAGE * H * D + i] = 0.0f;
    values[3 * PAGE * H * D + i] = i < H * D ? 1.0f : 2.0f;
  }
  for (int i = 0; i < H * D; ++i) v_new[i] = 6.0f;
  onepass_kv_cache cache;
  onepass_kv_cache_init(&cache);
  cache.k = tensor(keys, ONEPASS_FLOAT32, 4, cache_shape);
  cache.v = tensor(values, ONEPASS_FLOAT32, 4, cache_shape);
  cache.seqlens = tensor(length, ONEPASS_INT32, 1, sequences);
  cache.block_table = tensor(table, ONEPASS_INT32, 2, table_shape);
  cache.k_new = tensor(k_new, ONEPASS_FLOAT32, 4, one);
  cache.v_new = tensor(v_new, ONEPASS_FLOAT32, 4, one);
  const onepass_tensor tq = tensor(one_q, ONEPASS_FLOAT32, 4, one);
  const onepass_tensor to = tensor(out, ONEPASS_FLOAT32, 4, one);
  onepass_plan_info info;
  onepass_plan_info_init(&info);
  CHECK(onepass_plan_kvcache(&tq, &cache, &to, NULL, 1, &info) == ONEPASS_OK);
  CHECK(strncmp(info.kernel, "cpu.decode.", 11) == 0 && info.workspace_bytes > 0);
  CHECK(onepass_attention_kvcache(&tq, &cache, &to, NULL, NULL) == ONEPASS_OK);
  CHECK(fabsf(out[0] - 3.0f) < 1e-6f && values[1 * PAGE * H * D] == 6.0f);
  length[0] = 4; /* full: the append is refused */
  CHECK(onepass_attention_kvcache(&tq, &cache, &to, NULL, NULL) == ONEPASS_INVALID_ARGUMENT);
}

static void check_dropout_mask(void) {
  static uint8_t kept[H * S * S];
  static const int64_t mask_shape[4] = {1, H, S, S};
  const onepass_tensor mask = tensor(kept, ONEPASS_UINT8, 4, mask_shape);
  onepass_options options;
  onepass_options_init(&options);
  options.dropout = 0.5;
  options.dropout_seed = 1;
  CHECK(onepass_dropout_mask(&mask, &options) == ONEPASS_OK);
  int count = 0;
  for (int i = 0; i < H * S * S; ++i) count += kept[i];
  CHECK(count > 18 && count < 54); /* of 72; 4 standard deviations are 17 */
}

int main(void) {
  onepass_tensor tq, tk, tv, to, tl;
  onepass_tensor_init(&tq, q, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&tk, k, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&tv, v, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&to, o, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&tl, lse, ONEPASS_FLOAT32, 3, lse_shape);
  fill();

  CHECK(strcmp(onepass_version(), "0.0.0") > 0);
  CHECK(strcmp(onepass_last_error(), "") == 0);
  CHECK(onepass_attention(&tq, &tk, &tv, &to, NULL, NULL) == ONEPASS_OK);
  CHECK(fabsf(o[0] - 2.5f) < 1e-6f);

  onepass_options options;
  onepass_options_init(&options);
  options.mask = "causal & k < n & k != ids[col]";
  options.lse = tl;
  const int32_t ids[S] = {-1, -1, 2, -1, -1, -1}; /* hides key 2 */
  const int64_t ids_shape[1] = {S};
  onepass_argument arguments[2];
  onepass_argument_init(&arguments[0], "n");
  arguments[0].kind = ONEPASS_ARGUMENT_INT;
  arguments[0].integer = 5;
  onepass_argument_init(&arguments[1], "ids");
  arguments[1].kind = ONEPASS_ARGUMENT_ARRAY;
  onepass_tensor_init(&arguments[1].array, ids, ONEPASS_INT32, 1, ids_shape);
  options.arguments = arguments;
  options.argument_count = 2;
  onepass_exec exec;
  onepass_exec_init(&exec);
  exec.threads = 1;
  CHECK(onepass_attention(&tq, &tk, &tv, &to, &options, &exec) == ONEPASS_OK);
  CHECK(fabsf(o[5 * H * D] - 2.0f) < 1e-6f); /* keys 0, 1, 3, 4 */
  CHECK(fabsf(lse[5] - logf(4.0f)) < 1e-6f);

  onepass_plan_info info;
  onepass_plan_info_init(&info);
  CHECK(onepass_plan(&tq, &tk, &tv, &to, &options, 1, &info) == ONEPASS_OK);
  CHECK(strncmp(info.kernel, "cpu.forward.", 12) == 0 && info.threads == 1);

  /* A start position: every query stands at 100 and so sees every key. */
  onepass_options_init(&options);
  options.mask = "causal";
  options.has_q_start = 1;
  options.q_start = 100;
  CHECK(onepass_attention(&tq, &tk, &tv, &to, &options, NULL) == ONEPASS_OK);
  CHECK(fabsf(o[0] - 2.5f) < 1e-6f);

  /* Merging with nothing changes nothing. */
  static float none[S * H * D], none_lse[H * S];
  onepass_tensor tn, tnl;
  onepass_tensor_init(&tn, none, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&tnl, none_lse, ONEPASS_FLOAT32, 3, lse_shape);
  for (int i = 0; i < H * S; ++i) none_lse[i] = -INFINITY, lse[i] = 1.0f;
  CHECK(onepass_merge(&to, &tl, &tn, &tnl, NULL) == ONEPASS_OK);
  CHECK(o[0] == 2.5f && lse[0] == 1.0f);

  /* A caller with an older, shorter struct: what it lacks keeps its default. */
  onepass_options older;
  onepass_options_init(&older);
  older.mask = "causal";
  older.dropout = 7.0; /* beyond its size */
  older.size = offsetof(onepass_options, sink);
  CHECK(onepass_attention(&tq, &tk, &tv, &to, &older, NULL) == ONEPASS_OK);

  /* Refusals: a code, a message that begins with the argument, nothing written. */
  o[0] = -7.0f;
  onepass_options_init(&options);
  options.mask = "causl";
  CHECK(onepass_attention(&tq, &tk, &tv, &to, &options, NULL) == ONEPASS_INVALID_ARGUMENT);
  CHECK(strncmp(onepass_last_error(), "mask, column 1", 14) == 0);
  CHECK(onepass_attention(NULL, &tk, &tv, &to, NULL, NULL) == ONEPASS_INVALID_ARGUMENT);
  CHECK(strncmp(onepass_last_error(), "q: ", 3) == 0);
  onepass_tensor bad = tk;
  bad.dtype = ONEPASS_FLOAT16;
  CHECK(onepass_attention(&tq, &bad, &tv, &to, NULL, NULL) == ONEPASS_TYPE_ERROR);
  bad = tk;
  bad.rank = 9;
  CHECK(onepass_attention(&tq, &bad, &tv, &to, NULL, NULL) == ONEPASS_INVALID_ARGUMENT);
  bad = tk;
  bad.size = 0;
  CHECK(onepass_attention(&tq, &bad, &tv, &to, NULL, NULL) == ONEPASS_INVALID_ARGUMENT);
  bad = tq;
  bad.device = ONEPASS_CUDA;
  CHECK(onepass_attention(&bad, &tk, &tv, &to, NULL, NULL) == ONEPASS_NOT_SUPPORTED);
  options.mask = NULL;
  options.argument_count = 3;
  CHECK(onepass_attention(&tq, &tk, &tv, &to, &options, NULL) == ONEPASS_INVALID_ARGUMENT);
  CHECK(onepass_plan(&tq, &tk, &tv, &to, NULL, 1, NULL) == ONEPASS_INVALID_ARGUMENT);
  CHECK(o[0] == -7.0f);

  check_backward();
  check_kvcache();
  check_dropout_mask();
  printf("%d failed\n", failures);
  return failures != 0;
}
