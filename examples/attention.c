/* C99: causal attention of 8 heads, then what it says of a wrong call.
 * cc -std=c99 attention.c $(pkg-config --cflags --static --libs onepass) */
#include <onepass/onepass_c.h>
#include <stdio.h>

int main(void) {
  enum { S = 128, H = 8, D = 64 };
  static float q[S * H * D], k[S * H * D], v[S * H * D], o[S * H * D];
  const int64_t shape[4] = {1, S, H, D}; /* batch, sequence, head, dim */
  onepass_tensor tq, tk, tv, to;
  onepass_options options;
  for (int i = 0; i < S * H * D; ++i) {
    q[i] = (float)(i % 7) / 7.0f, k[i] = (float)(i % 5) / 5.0f, v[i] = (float)(i % 3);
  }
  onepass_tensor_init(&tq, q, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&tk, k, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&tv, v, ONEPASS_FLOAT32, 4, shape);
  onepass_tensor_init(&to, o, ONEPASS_FLOAT32, 4, shape);
  onepass_options_init(&options);
  options.mask = "causal";
  if (onepass_attention(&tq, &tk, &tv, &to, &options, NULL) != ONEPASS_OK) {
    fprintf(stderr, "%s\n", onepass_last_error());
    return 1;
  }
  printf("the first query sees the first key alone: %d\n", o[1] == v[1] && o[2] == v[2]);
  options.mask = "causl";
  if (onepass_attention(&tq, &tk, &tv, &to, &options, NULL) == ONEPASS_OK) return 1;
  printf("%s\n", onepass_last_error());
  return 0;
}
