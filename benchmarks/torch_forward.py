"""Times the forward beside PyTorch's FlashAttention-2 back end of scaled_dot_product_attention.

    python3 benchmarks/torch_forward.py LIBRARY [RESULTS.md]

LIBRARY is onepass as a shared library (cmake -DBUILD_SHARED_LIBS=ON). bf16, h * d = 2048, b * s =
16384, self-attention, contiguous (b, s, h, d). Both run in this process on the same tensors, back
to back for 0.15 s an entry, of which the last 60 % count, in two rounds of opposite order.
TFLOP/s count 4 b h s^2 d, half of it under a causal mask."""

import ctypes
import datetime
import math
import os
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BFLOAT16, FLOAT32, CUDA = 2, 1, 1
SECONDS = 0.15


class Tensor(ctypes.Structure):  # onepass_tensor
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("device", ctypes.c_int32), ("device_index", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 4),
                ("strides", ctypes.c_int64 * 4)]


class Exec(ctypes.Structure):  # onepass_exec
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_int64),
                ("stream", ctypes.c_void_p)]


class PlanInfo(ctypes.Structure):  # onepass_plan_info
    _fields_ = [("size", ctypes.c_size_t), ("kernel", ctypes.c_char * 64),
                ("tile_rows", ctypes.c_int64), ("tile_keys", ctypes.c_int64),
                ("splits", ctypes.c_int64), ("workspace_bytes", ctypes.c_int64),
                ("threads", ctypes.c_int32)]


class Options(ctypes.Structure):  # the first members of onepass_options
    _fields_ = [("size", ctypes.c_size_t), ("mask", ctypes.c_char_p), ("score", ctypes.c_char_p),
                ("rest", ctypes.c_byte * 4096)]


def view(x):
    out = Tensor(ctypes.sizeof(Tensor), x.data_ptr(), BFLOAT16, CUDA, x.device.index or 0, x.dim())
    for i in range(x.dim()):
        out.shape[i], out.strides[i] = x.shape[i], x.stride(i)
    return out


class Onepass:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.onepass_last_error.restype = ctypes.c_char_p

    def call(self, q, k, v, o, causal):
        """The forward as a function without arguments, and its kernel's name."""
        options, exec_, info = Options(), Exec(), PlanInfo()
        self.library.onepass_options_init(ctypes.byref(options))
        self.library.onepass_exec_init(ctypes.byref(exec_))
        self.library.onepass_plan_info_init(ctypes.byref(info))
        options.mask = b"causal" if causal else b""
        exec_.stream = torch.cuda.current_stream().cuda_stream
        views = [view(x) for x in (q, k, v, o)]
        arguments = [ctypes.byref(x) for x in (*views, options, exec_)]

        def run():
            if self.library.onepass_attention(*arguments) != 0:
                raise RuntimeError(self.library.onepass_last_error().decode())

        self.library.onepass_plan(*arguments[:5], 0, ctypes.byref(info))
        return run, f"{info.kernel.decode()} {info.tile_rows}x{info.tile_keys}"


def milliseconds(run):
    """Of one call, back to back."""
    for _ in range(3):
        run()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(5):
        run()
    end.record()
    end.synchronize()
    count = max(10, int(1000 * SECONDS / (begin.elapsed_time(end) / 5)))
    for i in range(count):
        if i == count * 2 // 5:
            begin.record()
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / (count - count * 2 // 5)


def exact_error(out, q, k, v, causal):
    """Largest difference from float64, relative to the largest value, in two heads."""
    q, k, v = (x[:1, :, :2].transpose(1, 2).double() for x in (q, k, v))
    want = scaled_dot_product_attention(q, k, v, is_causal=causal)
    got = out[:1, :, :2].transpose(1, 2).double()
    return float((got - want).abs().max() / want.abs().max())


def measure(onepass, d, s, causal):
    b, h = 16384 // s, 2048 // d
    q, k, v = (torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    o = torch.full_like(q, math.nan)
    ours, kernel = onepass.call(q, k, v, o, causal)
    ours()
    if s <= 4096:
        error = exact_error(o, q, k, v, causal)
        assert error < 1e-2, f"d={d} s={s} causal={causal}: off by {error}"
    turned = [x.transpose(1, 2) for x in (q, k, v)]

    def theirs():
        scaled_dot_product_attention(*turned, is_causal=causal)

    times = {ours: [], theirs: []}
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        for order in ((ours, theirs), (theirs, ours)):
            for run in order:
                times[run].append(milliseconds(run))
    flops = 4 * b * h * s * s * d * (0.5 if causal else 1.0)
    mine, other = (flops / (sum(times[run]) / 2 * 1e9) for run in (ours, theirs))
    return kernel, mine, other


def main():
    torch.manual_seed(0)
    onepass = Onepass(sys.argv[1])
    commit = os.environ.get("COMMIT") or subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"{datetime.date.today()}, {torch.cuda.get_device_name()}, commit {commit}, "
             f"PyTorch {torch.__version__}: FlashAttention-2 back end", "",
             "| d | mask | s | kernel | TFLOP/s | PyTorch | ratio |",
             "|---|---|---|---|---|---|---|"]
    for d in (64, 128, 256):
        ratios = []
        for causal in (False, True):
            for s in (1024, 2048, 4096, 8192, 16384):
                kernel, mine, other = measure(onepass, d, s, causal)
                ratios.append(mine / other)
                lines.append(f"| {d} | {'causal' if causal else 'full'} | {s} | {kernel} | "
                             f"{mine:.0f} | {other:.0f} | {mine / other:.3f} |")
                print(lines[-1], flush=True)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"| {d} | geometric mean | | | | | {mean:.3f} |")
        print(lines[-1], flush=True)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
