/* onepass for C (C99) and everything that calls C. Each function says what its C++ namesake in
 * attention.h, backward.h, kv_cache.h and plan.h says; this header adds nothing but the form.
 *
 * Structs begin with their size, set by the *_init functions, so that a program built against an
 * older header goes on working. Functions return a code; the message of the last failure in this
 * thread is onepass_last_error(). */
#ifndef ONEPASS_ONEPASS_C_H
#define ONEPASS_ONEPASS_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum onepass_code {
  ONEPASS_OK = 0,
  ONEPASS_INVALID_ARGUMENT = 1,
  ONEPASS_TYPE_ERROR = 2,
  ONEPASS_NOT_SUPPORTED = 3,
  ONEPASS_NOT_PREPARED = 4,
  ONEPASS_RUNTIME_ERROR = 5
} onepass_code;

typedef enum onepass_dtype {
  ONEPASS_FLOAT64 = 0,
  ONEPASS_FLOAT32 = 1,
  ONEPASS_BFLOAT16 = 2,
  ONEPASS_FLOAT16 = 3,
  ONEPASS_INT64 = 4,
  ONEPASS_INT32 = 5,
  ONEPASS_UINT8 = 6,
  ONEPASS_BOOL = 7
} onepass_dtype;

typedef enum onepass_device { ONEPASS_CPU = 0, ONEPASS_CUDA = 1 } onepass_device;

/* A view of up to 4 dims; strides in elements, may be 0 or negative. rank -1 = not given. */
typedef struct onepass_tensor {
  size_t size;
  void* data;
  int32_t dtype; /* onepass_dtype */
  int32_t device;
  int32_t device_index;
  int32_t rank;
  int64_t shape[4];
  int64_t strides[4];
} onepass_tensor;

typedef enum onepass_argument_kind {
  ONEPASS_ARGUMENT_BOOL = 0,
  ONEPASS_ARGUMENT_INT = 1,
  ONEPASS_ARGUMENT_FLOAT = 2,
  ONEPASS_ARGUMENT_ARRAY = 3
} onepass_argument_kind;

/* A named argument of the mask or score expression; set `kind` and its field. `integer` also holds
 * a bool. */
typedef struct onepass_argument {
  size_t size;
  const char* name;
  int32_t kind; /* onepass_argument_kind */
  int64_t integer;
  double real;
  onepass_tensor array;
} onepass_argument;

/* onepass_options_init gives plain full attention. Strings and arrays are read during the call. */
typedef struct onepass_options {
  size_t size;
  const char* mask;        /* NULL or "" = full */
  const char* score;       /* NULL or "" = the logit itself */
  const char* definitions; /* NULL or "" = none */
  const onepass_argument* arguments;
  int64_t argument_count;
  int32_t has_scale;            /* 0 = 1 / sqrt(d) */
  int32_t top_left;             /* 0 = bottom-right alignment */
  double scale;                 /* as scale of onepass::Attention */
  onepass_tensor sink;          /* (h_q) or not given */
  onepass_tensor lse;           /* output (b, h_q, s_q) or not given */
  int32_t has_q_start;          /* 1: q_start counts */
  int32_t has_k_start;          /* 1: k_start counts */
  int64_t q_start;              /* of every sequence */
  int64_t k_start;              /* of every sequence */
  onepass_tensor q_start_array; /* (b) int32 or int64, instead of q_start */
  onepass_tensor k_start_array; /* (b) int32 or int64, instead of k_start */
  double dropout;
  uint64_t dropout_seed, dropout_offset;
  int64_t dropout_row0, dropout_col0;
  /* Packed sequences, (b + 1) int32 or int64: q, o, lse are then (t_q, h_q, d), (t_q, h_q, d_v),
   * (h_q, t_q), and k, v (t_kv, h_kv, d), (t_kv, h_kv, d_v). */
  onepass_tensor cu_seqlens_q, cu_seqlens_k;
  onepass_tensor seqused_k; /* keys in use, (b) int32 or int64 */
} onepass_options;

/* Where the gradient of the float array argument of that name goes: the array's own shape, float32
 * (float64 for float64 inputs). */
typedef struct onepass_argument_gradient {
  size_t size;
  const char* name;
  onepass_tensor gradient;
} onepass_argument_gradient;

/* What the backward reads beyond q, k and v, and what it writes; outputs that are not given are not
 * computed. */
typedef struct onepass_backward {
  size_t size;
  onepass_tensor o;          /* of the forward: (b, s_q, h_q, d_v) */
  onepass_tensor lse;        /* of the forward: (b, h_q, s_q) */
  onepass_tensor dout;       /* gradient of o */
  onepass_tensor dlse;       /* gradient of lse, or not given */
  onepass_tensor dq, dk, dv; /* shaped as q, k, v */
  onepass_tensor dsink;      /* (h_q) */
  const onepass_argument_gradient* argument_gradients;
  int64_t argument_gradient_count;
} onepass_backward;

/* Keys and values in a cache, contiguous or paged; what is not given is not used. */
typedef struct onepass_kv_cache {
  size_t size;
  onepass_tensor k, v;         /* (b_cache, capacity, h_kv, d or d_v), or (pages, page_size, ...) */
  onepass_tensor seqlens;      /* keys in the cache of each sequence, (b) int32 or int64 */
  onepass_tensor block_table;  /* (b, blocks) int32: paged */
  onepass_tensor batch_idx;    /* row of the contiguous cache of each sequence, (b) */
  onepass_tensor k_new, v_new; /* appended first: (b, s_new, h_kv, d or d_v) */
  /* (positions, rotary_dim / 2): rotates k_new and q by their positions. */
  onepass_tensor rotary_cos, rotary_sin;
  int32_t rotary_interleaved; /* 1: pairs (0, 1), (2, 3), ...; 0: (i, i + rotary_dim / 2) */
} onepass_kv_cache;

typedef struct onepass_exec {
  size_t size;
  int32_t threads; /* 0 = OMP_NUM_THREADS or every core */
  void* workspace; /* NULL = allocated by the call; else 64-byte aligned */
  int64_t workspace_bytes;
  void* stream;
} onepass_exec;

typedef struct onepass_plan_info {
  size_t size;
  char kernel[64];
  int64_t tile_rows, tile_keys, splits;
  int64_t workspace_bytes;
  int32_t threads;
} onepass_plan_info;

void onepass_options_init(onepass_options* options);
void onepass_exec_init(onepass_exec* exec);
void onepass_plan_info_init(onepass_plan_info* info);
void onepass_argument_init(onepass_argument* argument, const char* name);
void onepass_argument_gradient_init(onepass_argument_gradient* gradient, const char* name);
void onepass_backward_init(onepass_backward* backward);
void onepass_kv_cache_init(onepass_kv_cache* cache);

/* A row-major tensor. rank 0 to 4; the memory is read or written as the call says. */
void onepass_tensor_init(onepass_tensor* tensor, const void* data, onepass_dtype dtype,
                         int32_t rank, const int64_t* shape);

/* q (b, s_q, h_q, d), k (b, s_kv, h_kv, d), v (b, s_kv, h_kv, d_v), o (b, s_q, h_q, d_v). options
 * and exec may be NULL. */
onepass_code onepass_attention(const onepass_tensor* q, const onepass_tensor* k,
                               const onepass_tensor* v, const onepass_tensor* o,
                               const onepass_options* options, const onepass_exec* exec);

/* What that call would do; no data pointer is read. */
onepass_code onepass_plan(const onepass_tensor* q, const onepass_tensor* k, const onepass_tensor* v,
                          const onepass_tensor* o, const onepass_options* options, int32_t threads,
                          onepass_plan_info* info);

/* The same for the gradient and for a call over a cache. */
onepass_code onepass_plan_backward(const onepass_tensor* q, const onepass_tensor* k,
                                   const onepass_tensor* v, const onepass_backward* backward,
                                   const onepass_options* options, int32_t threads,
                                   onepass_plan_info* info);
onepass_code onepass_plan_kvcache(const onepass_tensor* q, const onepass_kv_cache* cache,
                                  const onepass_tensor* o, const onepass_options* options,
                                  int32_t threads, onepass_plan_info* info);

/* (o, lse) becomes the attention over both key sets: o (b, s, h, d_v), lse (b, h, s). */
onepass_code onepass_merge(const onepass_tensor* o, const onepass_tensor* lse,
                           const onepass_tensor* o_other, const onepass_tensor* lse_other,
                           const onepass_exec* exec);

/* Gradients of onepass_attention with the same options. */
onepass_code onepass_attention_backward(const onepass_tensor* q, const onepass_tensor* k,
                                        const onepass_tensor* v, const onepass_backward* backward,
                                        const onepass_options* options, const onepass_exec* exec);

/* Attention over a cache, after appending to it in place; an append beyond the capacity is refused
 * before anything is written. seqlens stays as it is. */
onepass_code onepass_attention_kvcache(const onepass_tensor* q, const onepass_kv_cache* cache,
                                       const onepass_tensor* o, const onepass_options* options,
                                       const onepass_exec* exec);

/* The pairs that the options' dropout keeps, into mask (b, h_q, s_q, s_kv), bool or uint8. In the
 * memory of a GPU it is written on the default stream. */
onepass_code onepass_dropout_mask(const onepass_tensor* mask, const onepass_options* options);

/* Of the last call that failed in this thread; "" before any has. Valid until the next failure. */
const char* onepass_last_error(void);

/* "0.1.0" */
const char* onepass_version(void);

#ifdef __cplusplus
}
#endif

#endif
