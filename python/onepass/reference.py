"""Attention in float64, step by step in NumPy, with its whole score matrix: the meaning of a call.

Slow and plain on purpose; it shares no code with the compiled library.
"""

import math

import numpy as np

from ._derivative import DifferentiableScore, times
from ._evaluate import Expression
from ._philox import dropout_mask

__all__ = ["attention", "attention_backward", "dropout_mask", "visible"]


def attention(
    q,
    k,
    v,
    *,
    mask="full",
    score=None,
    scale=None,
    args=None,
    sink=None,
    dropout=0.0,
    seed=0,
    offset=0,
    row0=0,
    col0=0,
    align="bottom_right",
    q_start=None,
    k_start=None,
    definitions=None,
    return_lse=False,
):
    """softmax(mask(score(scale * q k^T))) v in float64.

    Parameters
    ----------
    q : array (b, s_q, h_q, d)
    k : array (b, s_kv, h_kv, d)
    v : array (b, s_kv, h_kv, d_v)
        Any real dtype, h_q a multiple of h_kv; query head h reads key/value head h // (h_q / h_kv).
    mask : str
        Expression of type bool; true = this key is visible.
    score : str, optional
        Expression of type float that gives the new logit from ``s``.
    scale : float, optional
        Default 1 / sqrt(d).
    args : dict of str to bool, int, float or array, optional
        Named arguments of the expressions.
    sink : array (h_q), optional
        One natural-unit logit a head that joins the softmax and has no value. +inf leaves no
        weight to finite logits: o = 0, lse = +inf.
    dropout : float
        Probability to drop a normalised weight; see `dropout_mask`.
    seed, offset, row0, col0 : int
        As in `dropout_mask`.
    align : {"bottom_right", "top_left"}
        q_start when not given: s_kv - s_q or 0.
    q_start, k_start : int or int array (b), optional
        Position of the first query and key of each sequence.
    definitions : str, optional
        Definitions of the caller's own, ``name(a, b) = expression`` each.
    return_lse : bool

    Returns
    -------
    o : float64 array (b, s_q, h_q, d_v)
    lse : float64 array (b, h_q, s_q)
        ln(sum(exp(s))) over the visible keys and the sink; only when return_lse. A row with no
        visible key has o = 0 and lse = -inf, or the sink.
    """
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    (b, s_q, h_q, d), (s_kv, h_kv) = q.shape, k.shape[1:3]
    group = h_q // h_kv if h_kv else 1
    if scale is None:
        scale = 1 / math.sqrt(d) if d else 1.0
    scopes = _scopes(b, h_q, group, s_q, s_kv, align, q_start, k_start)
    mask = Expression(mask, "mask", args, definitions)
    score = Expression(score, "score", args, definitions) if score else None
    keep = dropout_mask((b, h_q, s_q, s_kv), dropout, seed, offset, row0, col0) if dropout else None

    o = np.zeros((b, s_q, h_q, v.shape[3]))
    lse = np.full((b, h_q, s_q), -np.inf)
    for batch, head, names in scopes:
        s = scale * (q[batch, :, head] @ k[batch, :, head // group].T)
        if score:
            s = np.broadcast_to(score({**names, "s": s}), s.shape)
        seen = np.broadcast_to(mask(names), s.shape) & (s != -np.inf)
        logit = -np.inf if sink is None else float(np.asarray(sink)[head])
        p, _, lse[batch, head] = _softmax(np.where(seen, s, -np.inf), logit)
        if dropout:
            p, seen = p / (1 - dropout), seen & keep[batch, head]
        o[batch, :, head] = _weighted_sum(p, seen, v[batch, :, head // group])
    return (o, lse) if return_lse else o


def attention_backward(
    dout,
    q,
    k,
    v,
    *,
    mask="full",
    score=None,
    scale=None,
    args=None,
    sink=None,
    dropout=0.0,
    seed=0,
    offset=0,
    row0=0,
    col0=0,
    align="bottom_right",
    q_start=None,
    k_start=None,
    definitions=None,
    dlse=None,
    return_args=False,
):
    """Gradients of sum(dout * o) + sum(dlse * lse) in float64, with o and lse as in `attention`.

    Parameters
    ----------
    dout : array (b, s_q, h_q, d_v)
    dlse : array (b, h_q, s_q), optional
        Default 0.
    return_args : bool

    The others are those of `attention`.

    Returns
    -------
    dq, dk, dv : float64 arrays of the shapes of q, k, v
    dsink : float64 array (h_q)
        Only with a sink.
    dargs : dict of str to float64 array
        Of every argument that is a float array, in its own shape; only when return_args.
    """
    dout, q, k, v = (np.asarray(x).astype(np.float64) for x in (dout, q, k, v))
    (b, s_q, h_q, d), (s_kv, h_kv) = q.shape, k.shape[1:3]
    group = h_q // h_kv if h_kv else 1
    if scale is None:
        scale = 1 / math.sqrt(d) if d else 1.0
    if dlse is None:
        dlse = np.zeros((b, h_q, s_q))
    scopes = _scopes(b, h_q, group, s_q, s_kv, align, q_start, k_start)
    mask = Expression(mask, "mask", args, definitions)
    score = DifferentiableScore(score, "score", args, definitions) if score else None
    keep = dropout_mask((b, h_q, s_q, s_kv), dropout, seed, offset, row0, col0) if dropout else None

    dq, dk, dv = (np.zeros(x.shape) for x in (q, k, v))
    dsink, dargs = np.zeros(h_q), {n: np.zeros(a.shape) for n, a in _float_arrays(args).items()}
    for batch, head, names in scopes:
        key_head = (batch, slice(None), head // group)
        q_h, k_h, v_h = q[batch, :, head], k[key_head], v[key_head]
        dout_h, dlse_h = dout[batch, :, head], np.asarray(dlse, np.float64)[batch, head]
        with np.errstate(all="ignore"):
            s = scale * (q_h @ k_h.T)
            seen, names = mask(names), {**names, "s": s}
            s = np.broadcast_to(score(names), s.shape) if score else s
            seen = np.broadcast_to(seen, s.shape) & (s != -np.inf)
            logit = -np.inf if sink is None else float(np.asarray(sink)[head])
            p, p_sink, _ = _softmax(np.where(seen, s, -np.inf), logit)
            kept = seen & keep[batch, head] if dropout else seen
            z = 1 / (1 - dropout)

            o = _weighted_sum(p * z, kept, v_h)
            delta = np.where(seen.any(axis=1), (dout_h * o).sum(axis=1), 0.0)
            dp = np.where(kept, z * (dout_h @ v_h.T), 0.0)
            ds = np.where(seen, p * (dp + (dlse_h - delta)[:, None]), 0.0)
            dsink[head] += times(dlse_h - delta, p_sink).sum()
            if score:
                ds, found = score.backward(names, ds)
                for name in found.keys() & dargs.keys():
                    dargs[name] += found[name]
        dq[batch, :, head] = scale * _weighted_sum(ds, seen, k_h)
        dk[key_head] += scale * _weighted_sum(ds.T, seen.T, q_h)
        dv[key_head] += _weighted_sum((p * z).T, kept.T, dout_h)
    gradients = (dq, dk, dv) if sink is None else (dq, dk, dv, dsink)
    return (*gradients, dargs) if return_args else gradients


def _float_arrays(args):
    """Those named arguments that are float arrays; a plain number is not."""
    given = {n: x for n, x in (args or {}).items() if isinstance(x, np.ndarray) or np.ndim(x)}
    arrays = {name: np.asarray(x) for name, x in given.items()}
    return {name: x for name, x in arrays.items() if x.dtype.kind not in "biu"}


def visible(shape, mask, *, args=None, align="bottom_right", q_start=None, k_start=None, **others):
    """The mask as a bool array (b, h_q, s_q, s_kv) for ``shape = (b, h_q, s_q, s_kv)``.

    Other keywords: ``h_kv`` (default h_q) and ``definitions``.
    """
    b, h_q, s_q, s_kv = shape
    group = h_q // others.get("h_kv", h_q)
    expression = Expression(mask, "mask", args, others.get("definitions"))
    seen = np.empty(shape, bool)
    for batch, head, names in _scopes(b, h_q, group, s_q, s_kv, align, q_start, k_start):
        seen[batch, head] = expression(names)
    return seen


def _scopes(b, h_q, group, s_q, s_kv, align, q_start, k_start):
    """(batch, head, integer names of the language) for each sequence and query head."""
    if q_start is None:
        q_start = {"bottom_right": s_kv - s_q, "top_left": 0}[align]
    q_first = np.broadcast_to(np.asarray(q_start, np.int64), (b,))
    k_first = np.broadcast_to(np.asarray(0 if k_start is None else k_start, np.int64), (b,))
    row, col = np.arange(s_q)[:, None], np.arange(s_kv)[None, :]
    for batch, head in np.ndindex(b, h_q):
        yield batch, head, {
            **{"q": row + q_first[batch], "k": col + k_first[batch], "row": row, "col": col},
            **{"b": batch, "h": head, "h_kv": head // group, "s_q": s_q, "s_kv": s_kv},
            **{"token_q": row + batch * s_q, "token_k": col + batch * s_kv},
        }


def _softmax(s, sink):
    """Weights of the keys, weight of the sink and ln(sum(exp)) of each row; an empty row has 0."""
    with np.errstate(all="ignore"):
        top = np.maximum(s.max(axis=1, initial=-np.inf), sink)
        shift = np.where(top == -np.inf, 0.0, top)
        e = np.exp(s - shift[:, None])
        # Beside an infinite sink no finite logit has weight.
        e_sink = np.where(sink == shift, 1.0, np.exp(sink - shift))
        total = e.sum(axis=1) + e_sink
        lse = np.where(top == -np.inf, -np.inf, shift + np.log(total))
        total = np.where(top == -np.inf, 1.0, total)
        return e / total[:, None], e_sink / total, lse


def _weighted_sum(p, seen, v):
    """p @ v over the seen pairs only: what is hidden is left out, not multiplied by 0."""
    finite = np.isfinite(v)
    o = np.where(seen, p, 0.0) @ np.where(finite, v, 0.0)
    with np.errstate(all="ignore"):
        for key in np.flatnonzero(~finite.all(axis=1)):
            column = np.where(finite[key], 0.0, v[key])
            o += np.where(seen[:, key, None], p[:, key, None] * column, 0.0)
    return o
