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

  printf("%d failed\n", failures);
  return failures != 0;
}
