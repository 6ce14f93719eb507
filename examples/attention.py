"""Packed documents in one row: each token sees the earlier tokens of its own document."""

import numpy as np

import onepass

rng = np.random.default_rng(0)
q = rng.standard_normal((1, 300, 8, 64), dtype=np.float32)
k, v = (rng.standard_normal((1, 300, 2, 64), dtype=np.float32) for _ in range(2))
ids = np.repeat([0, 1, 2], [50, 130, 120])[None].astype(np.int32)

call = dict(mask="causal & document(ids)", args={"ids": ids})
out, lse = onepass.attention(q, k, v, **call, return_lse=True)
exact = onepass.reference.attention(q, k, v, **call)
print(onepass.explain(q, k, v, **call))
print(f"largest error against float64: {np.abs(out - exact).max():.1e}")
