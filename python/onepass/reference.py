"""Attention in float64, step by step in NumPy, with its whole score matrix: the meaning of a call.

Slow and plain on purpose; it shares no code with the compiled library.
"""

import math

import numpy as np

from ._evaluate import Expression
from ._philox import dropout_mask

__all__ = ["attention", "dropout_mask", "visible"]


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
        One natural-unit logit a head that joins the softmax and has no value.
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
        p, lse[batch, head] = _softmax(np.where(seen, s, -np.inf), logit)
        if dropout:
            p, seen = p / (1 - dropout), seen & keep[batch, head]
        o[batch, :, head] = _weighted_sum(p, seen, v[batch, :, head // group])
    return (o, lse) if return_lse else o


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
    """Weights and ln(sum(exp)) of each row, the sink in both; a row of -inf has weights 0."""
    with np.errstate(all="ignore"):
        top = np.maximum(s.max(axis=1, initial=-np.inf), sink)
        shift = np.where(top == -np.inf, 0.0, top)
        e = np.exp(s - shift[:, None])
        total = e.sum(axis=1) + np.exp(sink - shift)
        lse = np.where(top == -np.inf, -np.inf, shift + np.log(total))
        return e / np.where(top == -np.inf, 1.0, total)[:, None], lse


def _weighted_sum(p, seen, v):
    """p @ v over the seen pairs only: what is hidden is left out, not multiplied by 0."""
    finite = np.isfinite(v)
    o = np.where(seen, p, 0.0) @ np.where(finite, v, 0.0)
    with np.errstate(all="ignore"):
        for key in np.flatnonzero(~finite.all(axis=1)):
            column = np.where(finite[key], 0.0, v[key])
            o += np.where(seen[:, key, None], p[:, key, None] * column, 0.0)
    return o
