"""Fixtures of the program's tests: they drive the binary that ONEPASS_BIN names."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _binary():
    named = os.environ.get("ONEPASS_BIN")
    path = pathlib.Path(named) if named else ROOT / "build/release/bin/onepass"
    assert path.is_file(), f"ONEPASS_BIN: {path} is not there; the program is needed; make build"
    return path


@pytest.fixture(scope="session")
def onepass():
    """Runs the program; stdout (where no file is given for it) and stderr as text."""
    binary = _binary()

    def run(*arguments, env=None, cwd=None, timeout=300, stdout=subprocess.PIPE):
        return subprocess.run(
            [binary, *map(str, arguments)],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def model_folder():
    """Folder of stories260K.bin, tok512.bin and golden_greedy_256.txt."""
    named = os.environ.get("ONEPASS_MODEL_DIR")
    folder = pathlib.Path(named) if named else ROOT.parent / "shared/data/stories260K"
    if not (folder / "stories260K.bin").is_file():
        pytest.skip(f"no model: {folder} has no stories260K.bin; ONEPASS_MODEL_DIR names one")
    return folder


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def qkv(tmp_path, rng):
    """Writes q, k, v of (1, 6, 4, 8) and (1, 9, 2, 8); returns the arrays and the run arguments."""

    def make(dtype=np.float32, q_shape=(1, 6, 4, 8), kv_shape=(1, 9, 2, 8)):
        arrays = {
            name: rng.standard_normal(shape).astype(dtype)
            for name, shape in (("q", q_shape), ("k", kv_shape), ("v", kv_shape))
        }
        arguments = ["run", "-o", tmp_path / "o.npy"]
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
            arguments += [f"--{name}", tmp_path / f"{name}.npy"]
        return arrays, arguments

    return make
