"""Times the forward beside PyTorch's FlashAttention-2 back end of scaled_dot_product_attention.

    python3 benchmarks/torch_forward.py LIBRARY [RESULTS.md]

LIBRARY is onepass as a shared library (cmake -DBUILD_SHARED_LIBS=ON). bf16, h * d = 2048, b * s =
16384, self-attention, contiguous (b, s, h, d). Both run in this process on the same tensors, back
to back for 0.15 s an entry, of which the last 60 % count, in two rounds of opposite order.
TFLOP/s count 4 b h s^2 d, half of it under a causal mask. The last column is the time with dropout
0.1 over the time without."""

import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from onepass_torch import Onepass, Report, error_of, geometric_mean, side_by_side


def exact_error(out, q, k, v, causal):
    """From float64, in two heads."""
    q, k, v = (x[:1, :, :2].transpose(1, 2).double() for x in (q, k, v))
    want = scaled_dot_product_attention(q, k, v, is_causal=causal)
    return error_of(out[:1, :, :2].transpose(1, 2), want)


def measure(onepass, d, s, causal):
    b, h = 16384 // s, 2048 // d
    q, k, v = (torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    o = torch.full_like(q, math.nan)
    mask = "causal" if causal else ""
    ours, kernel = onepass.forward(q, k, v, o, mask=mask)
    ours()
    if s <= 4096:
        error = exact_error(o, q, k, v, causal)
        assert error < 1e-2, f"d={d} s={s} causal={causal}: off by {error}"
    dropped, _ = onepass.forward(q, k, v, torch.empty_like(o), mask=mask, dropout=0.1)
    turned = [x.transpose(1, 2) for x in (q, k, v)]

    def theirs():
        scaled_dot_product_attention(*turned, is_causal=causal)

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        mine, other, with_dropout = side_by_side(ours, theirs, dropped)
    flops = 4e-9 * b * h * s * s * d * (0.5 if causal else 1.0)
    return kernel, flops / mine, flops / other, with_dropout / mine


def main():
    torch.manual_seed(0)
    onepass = Onepass(sys.argv[1])
    report = Report("FlashAttention-2 back end", ["d", "mask", "s", "kernel", "TFLOP/s", "PyTorch",
                                                  "ratio", "dropout"])
    for d in (64, 128, 256):
        ratios, costs = [], []
        for causal in (False, True):
            for s in (1024, 2048, 4096, 8192, 16384):
                kernel, mine, other, cost = measure(onepass, d, s, causal)
                ratios.append(mine / other)
                costs.append(cost)
                report.row(d, "causal" if causal else "full", s, kernel, f"{mine:.0f}",
                           f"{other:.0f}", f"{mine / other:.3f}", f"{cost:.2f}")
        report.row(d, "geometric mean", "", "", "", "", f"{geometric_mean(ratios):.3f}",
                   f"{geometric_mean(costs):.2f}")
    if len(sys.argv) > 2:
        report.write(sys.argv[2])


if __name__ == "__main__":
    main()
