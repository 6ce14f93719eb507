"""GPU verbs on a machine that may have none: warm, packs, and what is said of a missing device."""

import os

import numpy as np
import pytest

LINE = "fwd bf16 b=1 h=2 s=64 d=32 mask=causal"
NO_NVRTC = {"ONEPASS_NVRTC": "/nowhere/libnvrtc.so"}


@pytest.fixture
def cache(tmp_path):
    return {"ONEPASS_CACHE": str(tmp_path / "cache"), "ONEPASS_PACK": ""}


def warm(onepass, cache, *arguments, **env):
    result = onepass("warm", *arguments, env={**cache, **env})
    if result.returncode == 3 and "nvrtc: not found" in result.stderr and not env:
        pytest.skip(result.stderr)
    return result


def test_warm_fills_the_cache(onepass, cache):
    result = warm(onepass, cache, LINE, "fwd f32 d=64", "--arch", "sm_90a,sm_80")
    assert result.returncode == 0, result.stderr
    rows = result.stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["sm_90a", "sm_80"] * 2
    assert all(" cuda.forward." in row and "device=cuda" in row for row in rows)
    before = set(os.listdir(cache["ONEPASS_CACHE"]))
    assert len(before) == 4
    assert warm(onepass, cache, LINE, "--arch", "sm_80").returncode == 0
    assert set(os.listdir(cache["ONEPASS_CACHE"])) == before


def test_a_pack_needs_no_compiler(onepass, cache, tmp_path):
    pack = tmp_path / "kernels.pack"
    result = warm(onepass, cache, LINE, "--arch", "sm_80", "-o", pack)
    assert result.returncode == 0 and f"ONEPASS_PACK={pack}" in result.stderr
    without = {**NO_NVRTC, "ONEPASS_PACK": str(pack), "ONEPASS_CACHE": ""}
    assert warm(onepass, cache, LINE, "--arch", "sm_80", **without).returncode == 0
    for line, architecture in ((LINE, "sm_90a"), ("fwd f32 d=64", "sm_80")):
        missing = warm(onepass, cache, line, "--arch", architecture, **without)
        assert missing.returncode == 3 and missing.stdout == ""
        assert "nvrtc: not found" in missing.stderr
        assert f"of its 1 kernels ONEPASS_PACK has none for this call on {architecture}" in (
            missing.stderr
        )


@pytest.mark.parametrize("content", (None, b"", b"something else", "cut"))
def test_a_pack_that_is_none(onepass, cache, tmp_path, content):
    pack = tmp_path / "kernels.pack"
    if content == "cut":
        assert warm(onepass, cache, LINE, "--arch", "sm_80", "-o", pack).returncode == 0
        pack.write_bytes(pack.read_bytes()[:-1])
    elif content is not None:
        pack.write_bytes(content)
    result = warm(onepass, cache, LINE, "--arch", "sm_80", ONEPASS_PACK=str(pack))
    assert result.returncode == 1
    assert f"ONEPASS_PACK: {pack}: is " in result.stderr and "onepass warm" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    (
        (["fwd f64"], "cuda.forward.generic: dtype: float64", 3),
        (["fwd f32", "--arch", "sm_90"], '--arch: "sm_90"; sm_80, ', 2),
        (["fwd f32", "--arch", "sm_80,,sm_86"], '--arch: "";', 2),
        (["nonsense", "--arch", "sm_80"], "problem line, column 1", 2),
    ),
)
def test_what_warm_refuses(onepass, cache, arguments, said, code):
    if "--arch" not in arguments:
        arguments = [*arguments, "--arch", "sm_80"]
    result = onepass("warm", *arguments, env=cache)
    assert result.returncode == code, result.stderr
    assert said in result.stderr and result.stdout == ""


@pytest.mark.parametrize(
    "words",
    (
        ["explain", "fwd f32 device=cuda:900"],
        ["explain", "fwd f32", "--device", "cuda:900"],
        ["bench", "fwd f32 device=cuda:900"],
        ["profile", "fwd f32", "--device", "cuda:900"],
        ["check", "D01", "--device", "cuda:900"],
    ),
)
def test_a_device_that_is_not_here(onepass, words):
    result = onepass(*words)
    assert result.returncode == 3 and result.stdout == ""
    assert result.stderr.count("onepass: ") == 1
    assert "no driver" in result.stderr or "cuda:900" in result.stderr


def test_run_on_a_device_that_is_not_here(onepass, qkv):
    _, arguments = qkv()
    result = onepass(*arguments, "--device", "cuda:900")
    assert result.returncode == 3 and result.stderr.count("\n") == 1


def test_generate_says_what_is_missing(onepass):
    result = onepass("generate", "--model", "m", "--tokenizer", "t", "--device", "cuda")
    assert result.returncode == 3 and "no GPU kernel takes a cache" in result.stderr


def gpu_or_skip(onepass):
    here = onepass("explain", LINE, "--device", "cuda")
    if here.returncode == 3:
        pytest.skip(here.stderr)


def test_run_gives_what_the_cpu_gives(onepass, qkv, tmp_path):
    gpu_or_skip(onepass)
    arrays, arguments = qkv()
    outputs = {}
    for device in ("cpu", "cuda"):
        result = onepass(*arguments, "--device", device, "--lse", tmp_path / "lse.npy")
        assert result.returncode == 0, result.stderr
        outputs[device] = [np.load(tmp_path / name) for name in ("o.npy", "lse.npy")]
    for ours, theirs in zip(outputs["cuda"], outputs["cpu"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert arrays["q"].shape == outputs["cuda"][0].shape


@pytest.mark.parametrize("line", (LINE, "bwd f32 b=1 h=2 s=100 d=32 mask=causal"))
def test_bench_on_a_gpu(onepass, line):
    gpu_or_skip(onepass)
    result = onepass("bench", line, "--device", "cuda", "--format", "csv", "--runs", "3")
    assert result.returncode == 0, result.stderr
    assert "device=cuda" in result.stdout and "cuda." in result.stdout


def test_check_on_a_gpu(onepass):
    gpu_or_skip(onepass)
    result = onepass("check", "D01", "--device", "cuda")
    assert result.returncode == 0, result.stdout
    assert "not on this device" in result.stdout  # float64


def test_devices_are_named(onepass):
    result = onepass("explain", "fwd f32", "--device", "gpu")
    assert result.returncode == 2 and '--device: "gpu"; cpu, cuda' in result.stderr
