"""Times the bf16 forward by head dim, beside its own at d = 256.

    python3 benchmarks/head_dims.py LIBRARY [RESULTS.md]

LIBRARY is onepass as a shared library (cmake -DBUILD_SHARED_LIBS=ON). b * s = 16384, 4 heads,
self-attention, timed as in torch_forward.py. TFLOP/s count 2 b h s^2 (d + d_v), half of it under a
causal mask; the error is the largest difference from float64 relative to the largest value."""

import math
import sys

import torch

from onepass_torch import Onepass, Report, error_of, side_by_side

HEAD_DIMS = ((256, 256), (264, 264), (320, 320), (384, 384), (512, 512), (576, 512), (576, 576))


def exact(q, k, v, causal):
    """In float64, of the first sequence's first head."""
    q, k, v = (x[0, :, 0].double() for x in (q, k, v))
    s = q @ k.T / math.sqrt(q.shape[-1])
    if causal:
        s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(s, -1) @ v


def measure(onepass, d, d_v, s, causal):
    """The kernel, TFLOP/s, the error."""
    b, h = 16384 // s, 4
    q, k, v = (torch.randn(b, s, h, x, device="cuda", dtype=torch.bfloat16) for x in (d, d, d_v))
    o = torch.full_like(v, math.nan)
    run, kernel = onepass.forward(q, k, v, o, mask="causal" if causal else "")
    run()
    error = error_of(o[0, :, 0], exact(q, k, v, causal))
    assert error < 1e-2, f"d={d}/{d_v} s={s} causal={causal}: off by {error}"
    flops = 2e-9 * b * h * s * s * (d + d_v) * (0.5 if causal else 1.0)
    return kernel, flops / side_by_side(run)[0], error


def main():
    torch.manual_seed(0)
    onepass = Onepass(sys.argv[1])
    report = Report("bf16 by head dim", ["d", "d_v", "mask", "s", "kernel", "TFLOP/s",
                                         "of d = 256", "error"])
    narrow = {}
    for d, d_v in HEAD_DIMS:
        for causal in (False, True):
            for s in (2048, 8192):
                kernel, speed, error = measure(onepass, d, d_v, s, causal)
                narrow.setdefault((causal, s), speed)
                report.row(d, d_v, "causal" if causal else "full", s, kernel, f"{speed:.0f}",
                           f"{speed / narrow[causal, s]:.2f}", f"{error:.1e}")
    if len(sys.argv) > 2:
        report.write(sys.argv[2])


if __name__ == "__main__":
    main()
