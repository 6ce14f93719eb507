"""`pip install .` from nothing: a wheel is built, and what it installs works without the tree."""

import os
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).parents[2]


def test_pip_install(tmp_path):
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps",
                    "--no-build-isolation", "--target", site,
                    f"-Cbuild-dir={tmp_path / 'build'}", root], check=True)
    code = (
        "import numpy, onepass\n"
        "x = numpy.ones((1, 3, 2, 4), numpy.float32)\n"
        "print(onepass.attention(x, x, x, mask='causal').sum(), onepass.__file__)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(site)}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path,
                             capture_output=True, text=True, check=True).stdout
    total, file = printed.split()
    assert float(total) == 24
    assert pathlib.Path(file).is_relative_to(site)
