"""Times masks and scores beside PyTorch's FlexAttention, forward and backward.

    python3 benchmarks/torch_flex.py LIBRARY [RESULTS.md] [FORM ...]

bf16, h * d = 2048, b * s = 16384, self-attention. FlexAttention is compiled, its block mask made
outside of the timing, its tensors contiguous (b, h, s, d); onepass takes (b, s, h, d). Both run in
this process, back to back for 0.15 s an entry, of which the last 60 % count, in two rounds of
opposite order. Both forwards write the statistics for the backward. FORM: of the forms below."""

import math
import sys

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from onepass_torch import Onepass, Report, error_of, geometric_mean, side_by_side

CAP, WINDOW, DOCUMENTS = 30.0, 1023, 4


def causal(_b, _h, q, k):
    return k <= q


def window(_b, _h, q, k):
    return (k <= q) & (k >= q - WINDOW)


def softcap(s, _b, _h, _q, _k):
    return CAP * torch.tanh(s / CAP)


def forms(h, b, s):
    """Name: onepass' terms, FlexAttention's mask and score."""
    ids = (torch.arange(s, device="cuda", dtype=torch.int32) * DOCUMENTS // s).expand(b, s)
    ids = ids.contiguous()
    slopes = torch.exp2(-8.0 * torch.arange(1, h + 1, device="cuda") / h).float()

    def document(_b, _h, q, k):
        return (k <= q) & (ids[0, q] == ids[0, k])

    def alibi(x, _b, head, q, k):
        return x - slopes[head] * (q - k).abs()

    return {
        "window": (dict(mask=f"causal & window({WINDOW}, 0)"), window, None),
        "document": (dict(mask="causal & document(ids)", ids=ids), document, None),
        "softcap": (dict(mask="causal", score=f"softcap(s, {CAP:.0f})"), causal, softcap),
        "alibi": (dict(mask="causal", score="alibi(s, slopes)", slopes=slopes), causal, alibi),
    }


def measure(onepass, compiled, form, d, s):
    b, h = 16384 // s, 2048 // d
    terms, mask, score = forms(h, b, s)[form]
    block_mask = create_block_mask(mask, None, None, s, s, device="cuda")
    q, k, v, dout = (torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16)
                     for _ in range(4))
    o, lse = torch.full_like(q, math.nan), torch.empty(b, h, s, device="cuda")
    gradients = [torch.full_like(q, math.nan) for _ in range(3)]
    forward, kernel = onepass.forward(q, k, v, o, lse, **terms)
    forward()
    backward, backward_kernel = onepass.backward(q, k, v, o, lse, dout, *gradients, **terms)
    backward()

    theirs = [x.transpose(1, 2).contiguous().requires_grad_() for x in (q, k, v)]
    their_dout = dout.transpose(1, 2).contiguous()

    def their_forward():
        return compiled(*theirs, score_mod=score, block_mask=block_mask)

    out = their_forward()

    def their_backward():
        return torch.autograd.grad(out, theirs, their_dout, retain_graph=True)

    for name, mine, other in zip(("o", "dq", "dk", "dv"), (o, *gradients),
                                 (out, *their_backward())):
        error = error_of(mine.transpose(1, 2), other)
        assert error < 2e-2, f"{form} d={d} s={s}: {name} off by {error}"
    return ((kernel, *side_by_side(forward, their_forward)),
            (backward_kernel, *side_by_side(backward, their_backward)))


def main():
    torch.manual_seed(0)
    onepass = Onepass(sys.argv[1])
    compiled = torch.compile(flex_attention, dynamic=False)
    report = Report("FlexAttention", ["form", "d", "s", "pass", "kernel", "ms", "FlexAttention",
                                      "ratio"])
    for form in sys.argv[3:] or ("window", "document", "softcap", "alibi"):
        for d in (64, 128):
            ratios = []
            for s in (2048, 16384):
                torch.compiler.reset()
                for name, (kernel, mine, other) in zip(("forward", "backward"),
                                                       measure(onepass, compiled, form, d, s)):
                    ratios.append(other / mine)
                    report.row(form, d, s, name, kernel, f"{mine:.3f}", f"{other:.3f}",
                               f"{other / mine:.2f}")
            report.row(form, d, "geometric mean", "", "", "", "", f"{geometric_mean(ratios):.2f}")
    if len(sys.argv) > 2:
        report.write(sys.argv[2])


if __name__ == "__main__":
    main()
