"""Token by token over a paged cache: the caller advances the lengths, the call appends the keys."""

import numpy as np

import onepass

rng = np.random.default_rng(0)
b, h_q, h_kv, d, page, steps = 2, 8, 2, 64, 16, 40
k_cache, v_cache = np.zeros((2, 8, page, h_kv, d), np.float32)  # 8 pages for all sequences
seqlens = np.array([20, 3], np.int32)  # keys in the cache, as if a prompt had been put there
k_cache[:3], v_cache[:3] = rng.standard_normal((2, 3, page, h_kv, d))
table = np.full((b, 4), -1, np.int32)  # entries not in use yet may be anything, such as -1
table[0, :2], table[1, :1] = (0, 1), 2
free = [3, 4, 5, 6, 7]

for step in range(steps):
    q = rng.standard_normal((b, 1, h_q, d), dtype=np.float32)
    k_new, v_new = rng.standard_normal((2, b, 1, h_kv, d), dtype=np.float32)
    for i in range(b):  # a new page where the next key begins one
        if seqlens[i] % page == 0:
            table[i, seqlens[i] // page] = free.pop(0)
    # Puts k_new and v_new behind the seqlens[i] keys of sequence i, then attends to all of them.
    o = onepass.attention_kvcache(q, k_cache, v_cache, seqlens, block_table=table,
                                  k_new=k_new, v_new=v_new)
    seqlens += 1  # the call leaves seqlens as it is

k, v = (cache[table[1, :3]].reshape(1, -1, h_kv, d)[:, :seqlens[1]] for cache in (k_cache, v_cache))
exact = onepass.reference.attention(q[1:], k, v)
print(f"{seqlens} keys; largest error against float64: {np.abs(o[1:] - exact).max():.1e}")
