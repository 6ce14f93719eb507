"""What the benchmarks beside PyTorch share: onepass' C interface on a GPU's tensors, and timing."""

import ctypes
import datetime
import math
import os
import subprocess

import torch

DTYPES = {torch.float64: 0, torch.float32: 1, torch.bfloat16: 2, torch.float16: 3,
          torch.int64: 4, torch.int32: 5}
CUDA, ARRAY = 1, 3
SECONDS = 0.15


class Tensor(ctypes.Structure):  # onepass_tensor
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("device", ctypes.c_int32), ("device_index", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 4),
                ("strides", ctypes.c_int64 * 4)]


class Argument(ctypes.Structure):  # onepass_argument
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("kind", ctypes.c_int32),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double), ("array", Tensor)]


class Options(ctypes.Structure):  # onepass_options
    _fields_ = [("size", ctypes.c_size_t), ("mask", ctypes.c_char_p), ("score", ctypes.c_char_p),
                ("definitions", ctypes.c_char_p), ("arguments", ctypes.POINTER(Argument)),
                ("argument_count", ctypes.c_int64), ("has_scale", ctypes.c_int32),
                ("top_left", ctypes.c_int32), ("scale", ctypes.c_double), ("sink", Tensor),
                ("lse", Tensor), ("has_q_start", ctypes.c_int32), ("has_k_start", ctypes.c_int32),
                ("q_start", ctypes.c_int64), ("k_start", ctypes.c_int64),
                ("q_start_array", Tensor), ("k_start_array", Tensor), ("dropout", ctypes.c_double),
                ("dropout_seed", ctypes.c_uint64), ("dropout_offset", ctypes.c_uint64),
                ("dropout_row0", ctypes.c_int64), ("dropout_col0", ctypes.c_int64),
                ("cu_seqlens_q", Tensor), ("cu_seqlens_k", Tensor), ("seqused_k", Tensor)]


class Backward(ctypes.Structure):  # onepass_backward
    _fields_ = [("size", ctypes.c_size_t), ("o", Tensor), ("lse", Tensor), ("dout", Tensor),
                ("dlse", Tensor), ("dq", Tensor), ("dk", Tensor), ("dv", Tensor),
                ("dsink", Tensor), ("argument_gradients", ctypes.c_void_p),
                ("argument_gradient_count", ctypes.c_int64)]


class Exec(ctypes.Structure):  # onepass_exec
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_int64),
                ("stream", ctypes.c_void_p)]


class PlanInfo(ctypes.Structure):  # onepass_plan_info
    _fields_ = [("size", ctypes.c_size_t), ("kernel", ctypes.c_char * 64),
                ("tile_rows", ctypes.c_int64), ("tile_keys", ctypes.c_int64),
                ("splits", ctypes.c_int64), ("workspace_bytes", ctypes.c_int64),
                ("threads", ctypes.c_int32)]


def view(x):
    out = Tensor(ctypes.sizeof(Tensor), x.data_ptr(), DTYPES[x.dtype], CUDA, x.device.index or 0,
                 x.dim())
    for i in range(x.dim()):
        out.shape[i], out.strides[i] = x.shape[i], x.stride(i)
    return out


class Onepass:
    """`path`: onepass as a shared library. Calls go to PyTorch's current stream; tensors are
    (b, s, h, d), lse (b, h, s). Each call comes as a function without arguments, with the name of
    its kernel."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.onepass_last_error.restype = ctypes.c_char_p

    def forward(self, q, k, v, o, lse=None, **terms):
        kept = (q, k, v, o, lse, terms)
        options, views = self._options(dict(terms)), [view(x) for x in (q, k, v, o)]
        if lse is not None:
            options.lse = view(lse)
        return self._call("onepass_attention", "onepass_plan", views, options, kept)

    def backward(self, q, k, v, o, lse, dout, dq, dk, dv, **terms):
        kept = (q, k, v, o, lse, dout, dq, dk, dv, terms)
        backward = self._new(Backward, "backward")
        for name, x in (("o", o), ("lse", lse), ("dout", dout), ("dq", dq), ("dk", dk),
                        ("dv", dv)):
            setattr(backward, name, view(x))
        return self._call("onepass_attention_backward", "onepass_plan_backward",
                          [*(view(x) for x in (q, k, v)), backward],
                          self._options(dict(terms)), kept)

    def _new(self, kind, name):
        out = kind()
        getattr(self.library, f"onepass_{name}_init")(ctypes.byref(out))
        return out

    def _options(self, terms):
        """`terms`: mask, score, dropout, and arrays that the expressions name."""
        options = self._new(Options, "options")
        options.mask = terms.pop("mask", "").encode()
        options.score = terms.pop("score", "").encode()
        options.dropout = terms.pop("dropout", 0.0)
        options.argument_count = len(terms)
        options.arguments = (Argument * max(1, len(terms)))(
            *(Argument(ctypes.sizeof(Argument), name.encode(), ARRAY, 0, 0.0, view(array))
              for name, array in terms.items()))
        return options

    def _call(self, name, plan, views, options, tensors):
        exec_, info = self._new(Exec, "exec"), self._new(PlanInfo, "plan_info")
        exec_.stream = torch.cuda.current_stream().cuda_stream
        function = getattr(self.library, name)
        arguments = [ctypes.byref(x) for x in (*views, options, exec_)]
        self._check(getattr(self.library, plan)(*arguments[:-1], 0, ctypes.byref(info)))
        workspace = torch.empty(max(1, info.workspace_bytes), dtype=torch.uint8, device="cuda")
        exec_.workspace, exec_.workspace_bytes = workspace.data_ptr(), info.workspace_bytes

        def run(_kept=(tensors, workspace)):
            self._check(function(*arguments))

        return run, f"{info.kernel.decode()} {info.tile_rows}x{info.tile_keys}"

    def _check(self, code):
        if code != 0:
            raise RuntimeError(self.library.onepass_last_error().decode())


def milliseconds(run):
    """Of one call, back to back for SECONDS, of which the last 60 % count."""
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


def side_by_side(*runs):
    """Milliseconds of each, mean of two rounds of opposite order."""
    times = {run: 0.0 for run in runs}
    for order in (runs, runs[::-1]):
        for run in order:
            times[run] += milliseconds(run) / 2
    return [times[run] for run in runs]


def error_of(got, want):
    """Largest difference, relative to the largest value."""
    got, want = got.detach().double(), want.detach().double()
    return float((got - want).abs().max() / want.abs().max())


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def heading(what):
    """Date, GPU and commit (that of the environment where the benchmark has no repository)."""
    commit = os.environ.get("COMMIT") or subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
        check=False).stdout.strip()
    return (f"{datetime.date.today()}, {torch.cuda.get_device_name()}, commit {commit}, "
            f"PyTorch {torch.__version__}: {what}")


class Report:
    """Lines of a Markdown table, printed as they come and written at the end."""

    def __init__(self, what, columns):
        self.lines = [heading(what), "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        print("\n".join(self.lines), flush=True)

    def row(self, *cells):
        self.lines.append(f"| {' | '.join(map(str, cells))} |")
        print(self.lines[-1], flush=True)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(self.lines) + "\n")
