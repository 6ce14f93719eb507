// Signatures and docstrings of the Python functions, in NumPy's style.
#pragma once

namespace onepass::python {

// What is computed, of every function of q, k and v; then outputs, gradients, threads and stream.
inline constexpr const char* call_parameters =
    "mask: str = 'full', score: Optional[str] = None, scale: Optional[float] = None, "
    "args: Optional[Dict[str, Any]] = None, sink: Any = None, dropout: float = 0.0, seed: int = 0, "
    "offset: int = 0, row0: int = 0, col0: int = 0, align: str = 'bottom_right', "
    "q_start: Any = None, k_start: Any = None, definitions: Optional[str] = None, ";
inline constexpr const char* packed_parameters =
    "cu_seqlens_q: Any, cu_seqlens_k: Any, *, seqused_k: Any = None, ";
inline constexpr const char* cache_parameters =
    "block_table: Any = None, cache_batch_idx: Any = None, k_new: Any = None, v_new: Any = None, "
    "rotary_cos: Any = None, rotary_sin: Any = None, rotary_interleaved: bool = False, ";
inline constexpr const char* output_parameters =
    "return_lse: bool = False, out: Any = None, out_dtype: Any = None, ";
inline constexpr const char* gradient_parameters = "dlse: Any = None, return_args: bool = False, ";
inline constexpr const char* exec_parameters = "threads: Optional[int] = None, stream: Any = None)";

inline constexpr const char* attention_doc =
    R"(Exact attention, softmax(mask(score(scale * q k^T))) v, in one pass over the data.

The online softmax of FlashAttention (Dao et al. 2022, arXiv:2205.14135; Milakov and Gimelshein
2018, arXiv:1805.02867): no s_q x s_kv buffer is ever made. Other threads of Python run meanwhile.

Parameters
----------
q : array (b, s_q, h_q, d)
k : array (b, s_kv, h_kv, d)
v : array (b, s_kv, h_kv, d_v)
    float64, float32, bfloat16 or float16, all three alike: in CPU memory NumPy (ml_dtypes.bfloat16
    too), or anything with ``__dlpack__``; on a GPU arrays of PyTorch, CuPy and the like. Any
    strides, without copies. h_q is a multiple of h_kv; query head h reads key/value head
    h // (h_q / h_kv).
mask : str
    Expression of type bool; true = this key is visible. See docs/expressions.md.
score : str, optional
    Expression of type float that gives the new logit from ``s``.
scale : float, optional
    Default 1 / sqrt(d). Up to 2**252 either way (float64: any finite number); on a GPU what float32
    holds.
args : dict of str to bool, int, float or array, optional
    Named arguments of the expressions; arrays of 0 to 4 dims.
sink : array (h_q), optional
    One logit a head, natural units, that joins the softmax and has no value. float32, or float64
    for float64 inputs.
dropout : float
    Probability to drop a normalised weight, in [0, 1).
seed, offset : int
    64-bit seed and offset of dropout (Philox4x32-10; docs/semantics.md has the contract).
row0, col0 : int
    Where these queries and keys lie in a longer problem's dropout; multiples of 16.
align : {"bottom_right", "top_left"}
    Where the first query stands when q_start is not given: s_kv - s_q or 0.
q_start, k_start : int or int array (b), optional
    Position of the first query and of the first key, one for all sequences or one each.
definitions : str, optional
    Definitions of your own, ``name(a, b) = expression`` each, separated by ``;`` or newlines.
return_lse : bool
    Also return lse.
out : array (b, s_q, h_q, d_v), optional
    Written in place and returned; it may not overlap an input.
out_dtype : dtype or str, optional
    dtype of the output: that of q (the default), or float32 for partial results to be merged.
threads : int, optional
    Default: OMP_NUM_THREADS, else every core this process may use. Results do not depend on it.
stream : int or stream of PyTorch or CuPy, optional
    Of a GPU: where the work is put; the default is the current stream of q's package. The call does
    not wait for it.

Returns
-------
o : array (b, s_q, h_q, d_v)
    Of the same kind as q.
lse : array (b, h_q, s_q)
    ln(sum(exp(s))) over the visible keys and the sink, float32 (float64 for float64 inputs); only
    when return_lse. A row with no visible key has o = 0 and lse = -inf, or the sink.

Raises
------
ValueError, TypeError
    A shape, value or expression, or a dtype or kind of argument, is wrong. Nothing was written.
NotImplementedError
    No kernel takes this call; the message names each with its reason.
RuntimeError
    The system failed, for example for want of memory.
)";

inline constexpr const char* plan_doc = R"(What `attention` with these arguments would do.

No data are read. Parameters and errors are those of `attention`.

Returns
-------
Plan
)";

inline constexpr const char* explain_doc = R"(The plan of `attention` with these arguments, as text.

Every kernel with yes or no and why, tiles and workspace. Parameters and errors are those of
`attention`.

Returns
-------
str
)";

inline constexpr const char* varlen_doc =
    R"(`attention` over packed sequences: queries and keys of all of them in one tensor each.

Every mask, score, position and dropout pair sees row, col, s_q and s_kv inside its own sequence.
The other parameters and errors are those of `attention`.

Parameters
----------
q : array (t_q, h_q, d)
k : array (t_kv, h_kv, d)
v : array (t_kv, h_kv, d_v)
cu_seqlens_q, cu_seqlens_k : int32 or int64 array (b + 1), or None
    Where each sequence begins in q and in k: from 0, not decreasing, ending at t. None = that side
    is not packed: q (b, s_q, h_q, d), or k and v (b, s_kv, h_kv, d).
seqused_k : int32 or int64 array (b), optional
    Keys in use of each sequence; the rest of them is not read.

Returns
-------
o : array (t_q, h_q, d_v)
lse : array (h_q, t_q)
    Only when return_lse.
)";

inline constexpr const char* backward_doc =
    R"(Gradients of sum(dout * o) + sum(dlse * lse), with o and lse as `attention` returns them.

FlashAttention-2's backward (Dao 2023, arXiv:2307.08691): scores are computed again, tile by tile,
from lse. Sums in float32 (float64 for float64), in a fixed order: results do not depend on threads.

Parameters
----------
dout : array (b, s_q, h_q, d_v)
    Gradient of o, the dtype of q or of out, any strides.
q, k, v : array
    As given to `attention`, and so are the keywords that it shares.
out : array (b, s_q, h_q, d_v)
lse : array (b, h_q, s_q)
    What `attention` returned for them.
dlse : array (b, h_q, s_q), optional
    Gradient of lse; default 0.
return_args : bool
    Also return dargs, the gradients of the float arrays in args.

Returns
-------
dq, dk, dv : array
    Shaped and typed as q, k, v.
dsink : array (h_q)
    Only with a sink.
dargs : dict of str to array
    Of every float array in args, in its own shape, float32 (float64 for float64 inputs); only when
    return_args.

Raises
------
ValueError, TypeError, NotImplementedError, RuntimeError
    As `attention`.
)";

inline constexpr const char* plan_backward_doc =
    R"(What `attention_backward` with these arguments would do.

No data are read and no gradients made. Parameters and errors are those of `attention_backward`.

Returns
-------
Plan
)";

inline constexpr const char* varlen_backward_doc =
    R"(`attention_backward` over packed sequences.

Parameters
----------
dout, q, k, v, out, lse : array
    As in `attention_backward`, packed as in `attention_varlen`.
cu_seqlens_q, cu_seqlens_k, seqused_k
    As in `attention_varlen`.

Returns
-------
As `attention_backward`.
)";

inline constexpr const char* kvcache_doc =
    R"(`attention` of q over a cache of keys and values, after new ones are appended to it in place.

The other parameters and errors are those of `attention`; by default the last query has the position
of the last key. An append beyond the capacity is refused before anything is written.

Parameters
----------
q : array (b, s_q, h_q, d)
k_cache, v_cache : array (b_cache, capacity, h_kv, d) and (b_cache, capacity, h_kv, d_v)
    Or, with a block table, (pages, page_size, h_kv, d) and (pages, page_size, h_kv, d_v), with any
    page size. Slots that are not in use are never read.
cache_seqlens : int32 or int64 array (b)
    Keys in the cache of each sequence before the call; not changed.
block_table : int32 array (b, blocks), optional
    Page of each block of page_size keys of a sequence.
cache_batch_idx : int32 or int64 array (b), optional
    Row of the contiguous cache that each sequence uses; default 0, 1, ...
k_new, v_new : array (b, s_new, h_kv, d) and (b, s_new, h_kv, d_v), optional
    Put into the cache at [cache_seqlens[b], cache_seqlens[b] + s_new) before attention.
rotary_cos, rotary_sin : array (positions, rotary_dim / 2), optional
    Rotary position embedding (Su et al. 2021, arXiv:2104.09864) of k_new and of q at their
    positions; q itself is not changed.
rotary_interleaved : bool
    True: pairs (0, 1), (2, 3), ...; False: pairs (i, i + rotary_dim / 2).

Returns
-------
o : array (b, s_q, h_q, d_v)
lse : array (b, h_q, s_q)
    Only when return_lse.
)";

inline constexpr const char* plan_kvcache_doc =
    R"(What `attention_kvcache` with these arguments would do.

No data are read and nothing is appended. Parameters and errors are those of `attention_kvcache`.

Returns
-------
Plan
)";

inline constexpr const char* dropout_mask_signature =
    "(shape: Sequence[int], p: float, seed: int = 0, offset: int = 0, row0: int = 0, "
    "col0: int = 0) -> Any";

inline constexpr const char* dropout_mask_doc = R"(Which weights dropout keeps.

Parameters
----------
shape : (b, h_q, s_q, s_kv)
p : float
    Probability to drop, in [0, 1).
seed, offset, row0, col0 : int
    As in `attention`.

Returns
-------
bool NumPy array of that shape; True = kept
)";

inline constexpr const char* merge_signature =
    "(o: Any, lse: Any, o_other: Any, lse_other: Any, *, threads: Optional[int] = None) -> None";

inline constexpr const char* merge_doc = R"(Merges a partial result into another, in place.

(o, lse) becomes the attention over both sets of keys: each o is weighed by exp(lse), as in
FlashAttention's split over keys (Dao et al. 2022, arXiv:2205.14135). (0, -inf) is neutral. A sink
belongs in one of the parts only.

Parameters
----------
o, o_other : array (b, s, h, d_v)
    float64, float32, bfloat16 or float16. Only o is written.
lse, lse_other : array (b, h, s)
    float32 or float64, natural log. Only lse is written.
threads : int, optional

Raises
------
ValueError, TypeError
    A shape or dtype is wrong, or o or lse is read-only. Nothing was written.
)";

inline constexpr const char* plan_class_doc =
    R"(What a call will do; `plan`, `plan_backward` and `plan_kvcache` make one.

Attributes
----------
kernel : str
    The kernel that runs it, and `reason`, why.
tile : (int, int)
    Queries and keys a tile.
splits : int
    Parts of the key range computed apart and merged.
threads : int
workspace_bytes : int
    Scratch memory of the call, exactly.
refused : list of (str, str)
    Every other kernel with its reason.
problem_line : str
    The problem in the form that the command line understands.
)";

}  // namespace onepass::python
