"""Files that verbs write: whole or not at all, never over an input, and refused before work."""

import os
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from test_bad_input import check


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("other", ("./o.npy", "link.npy", "folder/../o.npy"))
@pytest.mark.parametrize("exists", (True, False))
def test_outputs_are_two_files(onepass, qkv, tmp_path, other, exists):
    _, arguments = qkv()
    arguments[2] = "o.npy"
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.npy").symlink_to("o.npy")
    if exists:
        (tmp_path / "o.npy").write_bytes(b"old")
    before = names(tmp_path)
    check(onepass(*arguments, "--lse", other, cwd=tmp_path), 2, "--lse: ", "--out")
    assert names(tmp_path) == before
    assert not exists or (tmp_path / "o.npy").read_bytes() == b"old"


@pytest.mark.parametrize("flag", ("-o", "--lse"))
@pytest.mark.parametrize("target", ("./q.npy", "link.npy", "hard.npy", "n.npy", "start.npy"))
def test_outputs_are_no_inputs(onepass, qkv, tmp_path, flag, target):
    _, arguments = qkv()
    (tmp_path / "link.npy").symlink_to("k.npy")
    os.link(tmp_path / "v.npy", tmp_path / "hard.npy")
    np.save(tmp_path / "n.npy", np.array([5]))
    np.save(tmp_path / "start.npy", np.array([5]))
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    arguments += ["--mask", "lengths(n)", "--arg", "n=n.npy", "--q-start", "start.npy"]
    if flag == "-o":
        arguments[2] = target
    else:
        arguments += ["--lse", target]
    check(onepass(*arguments, cwd=tmp_path), 2, "a file of its own")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents


@pytest.mark.parametrize("lse", ("none/l.npy", "/dev/full", "folder", "q.npy/l.npy", 300 * "l"))
def test_both_outputs_or_none(onepass, qkv, tmp_path, lse):
    _, arguments = qkv()
    (tmp_path / "folder").mkdir()
    (tmp_path / "o.npy").write_bytes(b"old")
    before = names(tmp_path)
    result = onepass(*arguments, "--lse", lse, cwd=tmp_path)
    check(result, (1, 2), "--lse: ", lse)
    assert (tmp_path / "o.npy").read_bytes() == b"old" and names(tmp_path) == before


def test_outputs_replace_files(onepass, qkv, tmp_path):
    """Through a link into its target, with the rights that it had, and nothing left beside it."""
    _, arguments = qkv()
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "real.npy").chmod(0o640)
    (tmp_path / "o.npy").symlink_to("real.npy")
    before = names(tmp_path)
    assert onepass(*arguments, "--lse", tmp_path / "l.npy").returncode == 0
    assert names(tmp_path) == sorted([*before, "l.npy"])
    assert (tmp_path / "o.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (1, 6, 4, 8)
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o640


def test_outputs_to_devices(onepass, qkv, tmp_path):
    _, arguments = qkv()
    assert onepass(*arguments).returncode == 0
    wanted = (tmp_path / "o.npy").read_bytes()
    arguments[2] = "/dev/stdout"
    with (tmp_path / "out").open("wb") as out:
        assert onepass(*arguments, "--lse", "/dev/null", stdout=out).returncode == 0
    assert (tmp_path / "out").read_bytes() == wanted
    (tmp_path / "out").write_bytes(b"before ")
    with (tmp_path / "out").open("ab") as out:
        assert onepass(*arguments, stdout=out).returncode == 0
    assert (tmp_path / "out").read_bytes() == b"before " + wanted


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm here")
def test_outputs_in_shared_memory(onepass, qkv, tmp_path):
    _, arguments = qkv()
    arguments[2] = f"/dev/shm/{tmp_path.name}-{os.getpid()}.npy"
    try:
        for _ in range(2):  # a new file, then one that is there
            result = onepass(*arguments)
            assert result.returncode == 0, result.stderr
            assert np.load(arguments[2]).shape == (1, 6, 4, 8)
    finally:
        os.unlink(arguments[2])


@pytest.mark.parametrize("line", ("fwd f32 s=0", "fwd f32 s=0/8 mask=causal", "fwd f32 b=0 s=8",
                                  "fwd f32 h=0 s=8 mask=causal", "fwd f32 s=8/0 mask=causal"))
def test_picture_of_nothing(onepass, tmp_path, line):
    result = onepass("explain", line, "--svg", tmp_path / "map.svg")
    assert result.returncode == 0, result.stderr
    assert "a size is 0" in result.stdout
    text = "".join(ElementTree.parse(tmp_path / "map.svg").getroot().itertext())
    assert "a size is 0" in text and line.split()[2] in text


@pytest.mark.parametrize("arguments", (
    ["--version"], ["--help"], ["run", "--help"], ["explain", "fwd f32 s=8"],
    ["check", "--list"], ["learn", "--s", "16"],
    ["bench", "fwd f32 s=8", "--runs", "1"], ["profile", "fwd f32 s=8", "--runs", "1"],
))
def test_stdout_that_takes_nothing(onepass, arguments):
    with open("/dev/full", "w") as full:
        result = onepass(*arguments, stdout=full)
    assert result.returncode == 1, result.stderr
    assert result.stderr.splitlines()[-1].startswith("onepass: stdout: ")


def test_generate_stops_where_its_text_cannot_go(onepass, model_folder):
    with open("/dev/full", "w") as full:
        result = onepass("generate", "--model", model_folder / "stories260K.bin", "--tokenizer",
                         model_folder / "tok512.bin", stdout=full)
    assert result.returncode == 1 and "positions" not in result.stderr, result.stderr


@pytest.mark.parametrize("folder", ("/dev/null", "/dev/null/folder", "file", ""))
def test_generate_refuses_a_dump_before_work(onepass, model_folder, tmp_path, folder):
    (tmp_path / "file").write_text("old")
    result = onepass("generate", "--model", model_folder / "stories260K.bin", "--tokenizer",
                     model_folder / "tok512.bin", "--dump-qkv", folder, cwd=tmp_path)
    check(result, (1, 2), "--dump-qkv")
    assert (tmp_path / "file").read_text() == "old"


def test_explain_writes_nothing_to_stdout_without_its_picture(onepass, tmp_path):
    check(onepass("explain", "fwd f32 s=8", "--svg", tmp_path), 2, "is a folder")
