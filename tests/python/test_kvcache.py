"""attention_kvcache beside the NumPy reference over the joined keys."""

import numpy as np
import onepass
import pytest
from onepass import reference

B, H_Q, H_KV, D, CAPACITY = 3, 4, 2, 16, 40
LENGTHS = np.array([5, 0, 33], np.int32)


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def cache_of(rng, shape):
    """Keys and values in use, NaN in every other slot."""
    cache = np.full(shape, np.nan, np.float32)
    return cache, rng.normal(size=(B, CAPACITY, H_KV, D)).astype(np.float32)


def test_contiguous_cache_and_append(rng):
    q, k_new, v_new = (rng.normal(size=(B, 3, h, D)).astype(np.float32) for h in (H_Q, H_KV, H_KV))
    k_cache, keys = cache_of(rng, (5, CAPACITY, H_KV, D))
    v_cache, values = cache_of(rng, (5, CAPACITY, H_KV, D))
    batch_idx = np.array([4, 0, 2])
    for b, row in enumerate(batch_idx):
        k_cache[row, :LENGTHS[b]], v_cache[row, :LENGTHS[b]] = (
            keys[b, :LENGTHS[b]], values[b, :LENGTHS[b]])
    before = k_cache.copy()
    o, lse = onepass.attention_kvcache(q, k_cache, v_cache, LENGTHS, cache_batch_idx=batch_idx,
                                       k_new=k_new, v_new=v_new, mask="causal", return_lse=True)
    for b, row in enumerate(batch_idx):
        n = LENGTHS[b]
        joined = [np.concatenate((old[b, :n], new[b]))[None]
                  for old, new in ((keys, k_new), (values, v_new))]
        expected, expected_lse = reference.attention(q[b:b + 1], *joined, mask="causal",
                                                     return_lse=True)
        np.testing.assert_allclose(o[b], expected[0], atol=1e-5)
        np.testing.assert_allclose(lse[b], expected_lse[0], atol=1e-5)
        before[row, n:n + 3] = k_new[b]
    np.testing.assert_array_equal(k_cache, before)


@pytest.mark.parametrize("page", [1, 4, 16])
def test_paged_cache_equals_contiguous(rng, page):
    q = rng.normal(size=(B, 1, H_Q, D)).astype(np.float32)
    blocks = -(-CAPACITY // page)
    table = rng.permutation(B * blocks + 2)[:B * blocks].reshape(B, blocks).astype(np.int32)
    caches = []
    for _ in range(2):
        paged, rows = cache_of(rng, (B * blocks + 2, page, H_KV, D))
        contiguous = np.full((B, CAPACITY, H_KV, D), np.nan, np.float32)
        for b in range(B):
            contiguous[b, :LENGTHS[b]] = rows[b, :LENGTHS[b]]
            for i in range(LENGTHS[b]):
                paged[table[b, i // page], i % page] = rows[b, i]
        caches.append((contiguous, paged))
    (k, k_paged), (v, v_paged) = caches
    found = onepass.attention_kvcache(q, k_paged, v_paged, LENGTHS, block_table=table)
    np.testing.assert_array_equal(found, onepass.attention_kvcache(q, k, v, LENGTHS))
    assert (found[1] == 0).all() and np.isfinite(found).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(rng, interleaved):
    q, k_new, v_new = (rng.normal(size=(B, 2, h, D)) for h in (H_Q, H_KV, H_KV))
    k_cache = rng.normal(size=(B, CAPACITY, H_KV, D))
    v_cache = rng.normal(size=k_cache.shape)
    angle = np.arange(CAPACITY)[:, None] / 100.0 ** (np.arange(4) / 4)
    cos, sin = np.cos(angle), np.sin(angle)

    def rotated(x, first):
        y, rows = x.copy(), slice(first, first + x.shape[0])
        c, s = cos[rows, None], sin[rows, None]
        i, j = (slice(0, 8, 2), slice(1, 8, 2)) if interleaved else (slice(0, 4), slice(4, 8))
        y[..., i], y[..., j] = (x[..., i] * c - x[..., j] * s, x[..., i] * s + x[..., j] * c)
        return y

    joined = [(np.concatenate((k_cache[b, :n], rotated(k_new[b], n))),
               np.concatenate((v_cache[b, :n], v_new[b]))) for b, n in enumerate(LENGTHS)]
    o = onepass.attention_kvcache(q, k_cache, v_cache, LENGTHS, k_new=k_new, v_new=v_new,
                                  rotary_cos=cos, rotary_sin=sin, rotary_interleaved=interleaved,
                                  mask="causal")
    for b, (k, v) in enumerate(joined):
        expected = reference.attention(rotated(q[b], LENGTHS[b])[None], k[None], v[None],
                                       mask="causal")
        np.testing.assert_allclose(o[b], expected[0], atol=1e-12)


def test_an_append_that_does_not_fit_writes_nothing(rng):
    q, new = (rng.normal(size=(B, 8, h, D)).astype(np.float32) for h in (H_Q, H_KV))
    k_cache, v_cache = np.zeros((2, B, CAPACITY, H_KV, D), np.float32)
    with pytest.raises(ValueError, match="^cache_seqlens: .*33"):
        onepass.attention_kvcache(q, k_cache, v_cache, LENGTHS, k_new=new, v_new=new)
    assert not k_cache.any() and not v_cache.any()
    with pytest.raises(TypeError, match="^k_cache: read-only"):
        onepass.attention_kvcache(q, np.broadcast_to(k_cache, k_cache.shape), v_cache, LENGTHS,
                                  k_new=new, v_new=new)


def test_a_plan_appends_nothing(rng):
    q, new = (rng.normal(size=(B, 1, h, D)).astype(np.float32) for h in (H_Q, H_KV))
    k_cache, v_cache = np.zeros((2, 12, 16, H_KV, D), np.float32)
    keywords = {"block_table": np.arange(12, dtype=np.int32).reshape(B, 4), "k_new": new,
                "v_new": new, "mask": "causal"}
    plan = onepass.plan_kvcache(q, k_cache, v_cache, LENGTHS, threads=2, **keywords)
    assert plan.kernel.startswith("cpu.") and 1 <= plan.threads <= 2
    for word in ("b=3", "h=4/2", "s=1/64", "page=16", "new=1", "mask=causal"):
        assert word in plan.problem_line
    assert not k_cache.any() and not v_cache.any()
    with pytest.raises(ValueError, match="^k_new: "):
        onepass.plan_kvcache(q, k_cache, v_cache, LENGTHS, **keywords | {"k_new": new[..., :3]})


def test_rotary_tables_that_give_each_angle_twice(rng):
    q, new = (rng.normal(size=(B, 1, h, D)).astype(np.float32) for h in (H_Q, H_KV))
    k_cache, v_cache = np.zeros((2, B, CAPACITY, H_KV, D), np.float32)
    table = np.ones((CAPACITY, D), np.float32)
    start = "^rotary_cos: 16 pairs for head dim 16; "
    with pytest.raises(ValueError, match=start + r".*cos\[:, :d/2\]"):
        onepass.attention_kvcache(q, k_cache, v_cache, LENGTHS, k_new=new, v_new=new,
                                  rotary_cos=table, rotary_sin=table)
    assert not k_cache.any()
