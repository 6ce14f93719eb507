"""The code of README.md and examples/ does what it says: it is compiled and run."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

root = pathlib.Path(__file__).parents[2]


def blocks(language):
    text = (root / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built_library():
    library = root / "build/release/libonepass.a"
    if not library.exists():
        pytest.skip("build/release/libonepass.a is not there; `make build` makes it")
    return library


def test_cpp_of_readme(tmp_path):
    (code,) = blocks("cpp")
    assert len(code.strip().splitlines()) <= 8
    library = built_library()
    (tmp_path / "readme.cc").write_text(code)
    compiler = os.environ.get("CXX", "g++")
    run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{root}/include", "readme.cc",
         library, "-pthread", "-o", "readme"], tmp_path)
    run(["./readme"], tmp_path)


def test_python_of_readme(tmp_path):
    first, training = blocks("python")
    assert len(first.strip().splitlines()) <= 4
    printed = run([sys.executable, "-c", first], tmp_path)
    assert float(printed.split()[-1]) < 1e-5
    assert len(re.findall(r"^(?:for|    )", training, re.MULTILINE)) == 5
    seed = first.splitlines()[0] + "; np.random.seed(1)\n"
    assert float(run([sys.executable, "-c", seed + training], tmp_path)) < 1e-3


@pytest.mark.parametrize("name", ["attention", "decode", "backward"])
def test_python_example(tmp_path, name):
    printed = run([sys.executable, root / f"examples/{name}.py"], tmp_path)
    assert float(printed.split()[-1]) < 1e-5


def test_c_example(tmp_path):
    run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{root}/include", "-c",
         root / "examples/attention.c", "-o", "attention.o"], tmp_path)
    compiler = os.environ.get("CXX", "g++")
    run([compiler, "attention.o", built_library(), "-pthread", "-ldl", "-o", "attention"], tmp_path)
    first, second = run(["./attention"], tmp_path).splitlines()
    assert first.endswith(": 1") and second.startswith("mask, column 1: ")
