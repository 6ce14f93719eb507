"""Times the backward beside PyTorch's FlashAttention-2 back end.

    python3 benchmarks/torch_backward.py LIBRARY [RESULTS.md]

As torch_forward.py, for the gradients of q, k and v; PyTorch's are those of its own operator, with
no autograd around it. TFLOP/s count 10 b h s^2 d, half of it under a causal mask."""

import math
import sys

import torch

from onepass_torch import Onepass, Report, error_of, geometric_mean, side_by_side

flash_attention = torch.ops.aten._scaled_dot_product_flash_attention
flash_attention_backward = torch.ops.aten._scaled_dot_product_flash_attention_backward


def measure(onepass, d, s, causal):
    b, h = 16384 // s, 2048 // d
    q, k, v, dout = (torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16)
                     for _ in range(4))
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    o, lse, *rest = flash_attention(*turned, 0.0, causal, False)[:8]
    cu_q, cu_k, most_q, most_k, seed, offset = rest

    def theirs():
        return flash_attention_backward(dout.transpose(1, 2), *turned, o, lse, cu_q, cu_k, most_q,
                                        most_k, 0.0, causal, seed, offset)

    gradients = [torch.full_like(q, math.nan) for _ in range(3)]
    ours, kernel = onepass.backward(q, k, v, o.transpose(1, 2), lse, dout, *gradients,
                                    mask="causal" if causal else "")
    ours()
    for name, mine, other in zip("qkv", gradients, theirs()):
        error = error_of(mine, other.transpose(1, 2))
        assert error < 2e-2, f"d={d} s={s} causal={causal}: d{name} off by {error}"
    mine, other = side_by_side(ours, theirs)
    flops = 10e-9 * b * h * s * s * d * (0.5 if causal else 1.0)
    return kernel, flops / mine, flops / other


def main():
    torch.manual_seed(0)
    onepass = Onepass(sys.argv[1])
    report = Report("FlashAttention-2 back end, backward",
                    ["d", "mask", "s", "kernel", "TFLOP/s", "PyTorch", "ratio"])
    for d in (64, 128, 256):
        ratios = []
        for causal in (False, True):
            for s in (1024, 2048, 4096, 8192, 16384):
                kernel, mine, other = measure(onepass, d, s, causal)
                ratios.append(mine / other)
                report.row(d, "causal" if causal else "full", s, kernel, f"{mine:.0f}",
                           f"{other:.0f}", f"{mine / other:.3f}")
        report.row(d, "geometric mean", "", "", "", "", f"{geometric_mean(ratios):.3f}")
    if len(sys.argv) > 2:
        report.write(sys.argv[2])


if __name__ == "__main__":
    main()
