"""The package itself: import, version, docstrings, stub."""

import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys

import onepass
import pytest

PACKAGE = pathlib.Path(onepass._onepass.__file__).parent
FUNCTIONS = ("attention", "plan", "plan_backward", "plan_kvcache", "explain", "merge")


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", onepass.__version__)


def test_import_needs_numpy_alone():
    """No CUDA, no framework, no ml_dtypes."""
    script = (
        "import sys\n"
        "class Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'jax', 'cupy', 'ml_dtypes', 'cuda'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "import numpy, onepass\n"
        "x = numpy.ones((1, 3, 2, 4), numpy.float32)\n"
        "print(onepass.attention(x, x, x, mask='causal').sum())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "CUDA_VISIBLE_DEVICES": ""}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True,
                           text=True, check=True)
    assert found.stdout.split() == ["24.0"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring(name):
    text = getattr(onepass, name).__doc__
    for section in ("Parameters\n", "Returns\n", "Raises\n"):
        if section.strip() in {"attention": ("Parameters", "Returns", "Raises"),
                               "merge": ("Parameters", "Raises")}.get(name, ("Returns",)):
            assert section + "-" * (len(section) - 1) in text
    assert not inspect.getdoc(getattr(onepass, name)).startswith("Parameters")


def stub_of(text):
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in ast.parse(text).body if isinstance(node, kinds)}


def test_stub_names_everything():
    names = stub_of((PACKAGE / "_onepass.pyi").read_text())
    public = {n for n in dir(onepass._onepass) if not n.startswith("_")}
    assert public == set(names)
    keywords = {a.arg for a in names["attention"].args.kwonlyargs}
    assert keywords == set(inspect.signature(onepass.reference.attention).parameters) - {
        *("q", "k", "v")
    } | {"out", "out_dtype", "threads", "stream"}
    for name in ("plan", "explain"):
        assert {a.arg for a in names[name].args.kwonlyargs} == keywords
    for name in ("backward", "kvcache"):
        call, plan = (names[f"{prefix}_{name}"].args for prefix in ("attention", "plan"))
        assert ast.dump(call) == ast.dump(plan)
    assert (PACKAGE / "py.typed").exists()


def test_stub_is_what_stubgen_makes(tmp_path):
    stubgen = pytest.importorskip("nanobind.stubgen")
    pattern = pathlib.Path(__file__).parents[2] / "python" / "stub_pattern.txt"
    made = tmp_path / "made.pyi"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    subprocess.run([sys.executable, stubgen.__file__, "-q", "-m", "_onepass", "-i", str(PACKAGE),
                    "-p", str(pattern), "-o", str(made)], env=environment, check=True)
    assert made.read_text() == (PACKAGE / "_onepass.pyi").read_text()


def test_reference_shares_nothing_with_the_library():
    """It is a second reading of the meaning: no import of the compiled module."""
    folder = pathlib.Path(onepass.reference.__file__).parent
    for name in ("reference", "_syntax", "_definitions", "_evaluate", "_philox"):
        assert "_onepass" not in (folder / f"{name}.py").read_text()
