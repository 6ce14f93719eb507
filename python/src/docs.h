// Signatures and docstrings of the Python functions, in NumPy's style.
#pragma once

namespace onepass::python {

// Of attention, plan and explain alike.
inline constexpr const char* call_parameters =
    "(q: Any, k: Any, v: Any, *, mask: str = 'full', score: Optional[str] = None, "
    "scale: Optional[float] = None, args: Optional[Dict[str, Any]] = None, sink: Any = None, "
    "dropout: float = 0.0, seed: int = 0, align: str = 'bottom_right', q_start: Any = None, "
    "k_start: Any = None, definitions: Optional[str] = None, return_lse: bool = False, "
    "out: Any = None, out_dtype: Any = None, threads: Optional[int] = None)";

inline constexpr const char* attention_doc =
    R"(Exact attention, softmax(mask(score(scale * q k^T))) v, in one pass over the data.

The online softmax of FlashAttention (Dao et al. 2022, arXiv:2205.14135; Milakov and Gimelshein
2018, arXiv:1805.02867): no s_q x s_kv buffer is ever made. Other threads of Python run meanwhile.

Parameters
----------
q : array (b, s_q, h_q, d)
k : array (b, s_kv, h_kv, d)
v : array (b, s_kv, h_kv, d_v)
    float64, float32, bfloat16 or float16, all three alike, in CPU memory: NumPy (ml_dtypes.bfloat16
    too), or anything with ``__dlpack__``. Any strides, without copies. h_q is a multiple of h_kv;
    query head h reads key/value head h // (h_q / h_kv).
mask : str
    Expression of type bool; true = this key is visible. See docs/expressions.md.
score : str, optional
    Expression of type float that gives the new logit from ``s``.
scale : float, optional
    Default 1 / sqrt(d).
args : dict of str to bool, int, float or array, optional
    Named arguments of the expressions; arrays of 0 to 4 dims.
sink : array (h_q), optional
    One logit a head, natural units, that joins the softmax and has no value. float32, or float64
    for float64 inputs.
dropout : float
    Probability to drop a normalised weight, in [0, 1).
seed : int
    64-bit seed of dropout (Philox4x32-10; docs/semantics.md has the contract).
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

inline constexpr const char* merge_signature =
    "def merge(o: Any, lse: Any, o_other: Any, lse_other: Any, *, "
    "threads: Optional[int] = None) -> None";

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

inline constexpr const char* plan_class_doc = R"(What a call will do; `plan` makes one.

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
