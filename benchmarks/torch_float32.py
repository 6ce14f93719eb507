"""Times the float32 forward beside PyTorch's memory-efficient back end of
scaled_dot_product_attention, in float32 with allow_tf32 off.

    python3 benchmarks/torch_float32.py LIBRARY [RESULTS.md]

LIBRARY, shapes, timing and TFLOP/s are those of torch_forward.py. Errors are the largest difference
from float64 relative to the largest value, in two heads; the third is that of a softmax between
two matrix products in float32."""

import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from onepass_torch import Onepass, Report, error_of, geometric_mean, side_by_side


def unfused(q, k, v, causal):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(s, -1) @ v


def errors(ours, theirs, q, k, v, causal):
    """Of onepass, of PyTorch, unfused."""
    q, k, v, ours, theirs = (x[:1, :, :2].transpose(1, 2) for x in (q, k, v, ours, theirs))
    want = unfused(q.double(), k.double(), v.double(), causal)
    return [error_of(x, want) for x in (ours, theirs, unfused(q, k, v, causal))]


def measure(onepass, d, s, causal):
    """The kernel, TFLOP/s of both, the errors (none where s > 8192)."""
    b, h = 16384 // s, 2048 // d
    q, k, v = (torch.randn(b, s, h, d, device="cuda") for _ in range(3))
    o = torch.full_like(q, math.nan)
    ours, kernel = onepass.forward(q, k, v, o, mask="causal" if causal else "")
    turned = [x.transpose(1, 2) for x in (q, k, v)]

    def theirs():
        return scaled_dot_product_attention(*turned, is_causal=causal).transpose(1, 2)

    found = []
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        ours()
        if s <= 8192:
            found = errors(o, theirs(), q, k, v, causal)
            assert found[0] < 1e-5, f"d={d} s={s} causal={causal}: off by {found}"
        mine, other = side_by_side(ours, theirs)
    flops = 4e-9 * b * h * s * s * d * (0.5 if causal else 1.0)
    return kernel, flops / mine, flops / other, found


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    onepass = Onepass(sys.argv[1])
    report = Report("float32, memory-efficient back end, allow_tf32 off",
                    ["d", "mask", "s", "kernel", "TFLOP/s", "PyTorch", "ratio", "error",
                     "PyTorch's", "unfused"])
    for d in (64, 128):
        ratios = []
        for causal in (False, True):
            for s in (1024, 2048, 4096, 8192, 16384):
                kernel, mine, other, found = measure(onepass, d, s, causal)
                ratios.append(mine / other)
                cells = [f"{x:.1e}" for x in found] or [""] * 3
                report.row(d, "causal" if causal else "full", s, kernel, f"{mine:.0f}",
                           f"{other:.0f}", f"{mine / other:.3f}", *cells)
        report.row(d, "geometric mean", "", "", "", "", f"{geometric_mean(ratios):.3f}", *[""] * 3)
    if len(sys.argv) > 2:
        report.write(sys.argv[2])


if __name__ == "__main__":
    main()
