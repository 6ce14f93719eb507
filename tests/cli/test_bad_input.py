"""Bad flags, files, shapes, dtypes and expressions: a message of the stated form and the right exit
code, nothing on stdout, nothing written."""

import struct

import numpy as np
import pytest


def npy(header, data=b"", version=(1, 0), length=None):
    """An NPY file with any header text."""
    text = header.encode() if isinstance(header, str) else header
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", size) + text + data


def shaped(shape, descr="'<f4'", data=b""):
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n", data)


FILES = {
    "text": b"these are no numbers\n",
    "empty": b"",
    "magic_only": b"\x93NUMPY",
    "version_9": npy("{}\n", version=(9, 0)),
    "header_cut": npy("{'descr': '<f4'", length=500),
    "header_no_dict": npy("[1, 2, 3]\n"),
    "header_key_missing": npy("{'descr': '<f4', 'shape': (1, 6, 4, 8)}\n"),
    "header_key_twice": npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False}\n"),
    "header_order_word": npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}\n"),
    "header_trailing": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0,)} + 1\n"),
    "header_binary": npy(bytes(range(128, 256))),
    "big_endian": shaped("(1, 6, 4, 8)", "'>f4'", bytes(768)),
    "complex": shaped("(1, 6, 4, 8)", "'<c8'", bytes(1536)),
    "object": shaped("(1, 6, 4, 8)", "'|O'", bytes(768)),
    "structured": shaped("(1, 6, 4, 8)", "[('x', '<f4')]", bytes(768)),
    "size_negative": shaped("(1, -6, 4, 8)"),
    "size_huge": shaped("(99999999999999999999, 1, 1, 1)"),
    "sizes_overflow": shaped("(4611686018427387904, 4611686018427387904, 4, 8)"),
    "sizes_overflow_beside_0": shaped("(0, 4611686018427387904, 4611686018427387904, 8)"),
    "five_dims": shaped("(1, 1, 6, 4, 8)", data=bytes(768)),
    "data_short": shaped("(1, 6, 4, 8)", data=bytes(767)),
    "data_long": shaped("(1, 6, 4, 8)", data=bytes(769)),
    "data_huge": shaped("(1, 1099511627776, 4, 8)", data=bytes(768)),
    "bool_of_2": shaped("(1, 6, 4, 8)", "'|b1'", bytes([2]) * 192),
}


def check(result, code, *fragments):
    assert result.returncode in (code if isinstance(code, tuple) else (code,)), result.stderr
    lines = result.stderr.strip().splitlines()
    assert lines and lines[-1].startswith("onepass: "), result.stderr
    message = lines[-1].removeprefix("onepass: ")
    # argument: found; allowed; what to try. An expression's errors say found; expected.
    parts = 1 if ", column " in message.split(": ")[0] else 2
    assert ": " in message and message.count("; ") >= parts, message
    for fragment in fragments:
        assert fragment in message, message
    assert result.stdout == ""


@pytest.mark.parametrize("name", FILES)
def test_damaged_file(onepass, qkv, tmp_path, name):
    _, arguments = qkv()
    (tmp_path / "bad.npy").write_bytes(FILES[name])
    arguments[arguments.index("--q") + 1] = tmp_path / "bad.npy"
    check(onepass(*arguments), 2, "--q: ", "bad.npy: ")
    assert not (tmp_path / "o.npy").exists()


# Changes to a good `run` command, the exit code, and what the message says.
RUN = {
    "flag_unknown": (["--masks", "causal"], 2, "--masks"),
    "word_left_over": (["extra"], 2, "extra"),
    "threads_negative": (["--threads", "-1"], 2, "--threads"),
    "threads_word": (["--threads", "many"], 2, "--threads"),
    "scale_word": (["--scale", "big"], 2, "--scale"),
    "scale_nan": (["--scale", "nan"], 2, "scale"),
    "align_word": (["--align", "middle"], 2, "--align"),
    "align_spelling": (["--align", "top-left"], 2, "bottom_right and top_left are allowed"),
    "causal_flag": (["--causal"], 2, "write --mask causal"),
    "is_causal_flag": (["--is-causal"], 2, "write --mask causal"),
    "dtype_word": (["--dtype", "int8"], 2, "--dtype"),
    "start_word": (["--q-start", "soon"], 2, "--q-start"),
    "start_far": (["--q-start", str(2**61)], 2, "--q-start"),
    "dropout_word": (["--dropout", "some"], 2, "--dropout"),
    "dropout_all": (["--dropout", "1"], 2, "dropout"),
    "seed_of_65_bits": (["--seed", str(2**64)], 2, "--seed"),
    "scale_empty": (["--scale", ""], 2, "--scale: "),
    "lse_empty": (["--lse", ""], 2, "--lse: "),
    "out_empty": (["--out", ""], 2, "--out: "),
    "threads_many": (["--threads", "4097"], 2, "0 to 4096"),
    "argument_beyond_float64": (["--mask", "k < n", "--arg", "n=1e400"], 2, "float64"),
    "argument_beyond_int64": (["--mask", "k < n", "--arg", "n=9223372036854775808"], 2, "int64"),
    "argument_word": (["--mask", "k < n", "--arg", "n=abc"], 2, "neither a number nor a file"),
    "start_file_misnamed": (["--q-start", "start.np"], 2, ".npy"),
    "out_twice": (["-o", "p.npy"], 2, "--out: given more than once"),
    "mask_no_value": (["--mask"], 2, "--mask: no value"),
    "argument_folder": (["--mask", "k < n", "--arg", "n=/"], 2, "is a folder"),
    "argument_device": (["--mask", "k < n", "--arg", "n=/dev/null"], 2, "is no regular file"),
    "argument_inside_a_word": (["--mask", "window(3, 0)", "--arg", "w=3"], 2, "'w'"),
    "seed_negative": (["--seed", "-1"], 2, "--seed"),
    "mask_unfinished": (["--mask", "q - 5 <"], 2, "mask, column 8"),
    "mask_name": (["--mask", "kk <= q"], 2, 'mask, column 1: "kk"'),
    "mask_float": (["--mask", "q * 0.5"], 2, "mask"),
    "mask_deep": (["--mask", "(" * 100000], 2, "mask"),
    "mask_zero_divisor": (["--mask", "q // 0 == 1"], 2, "mask"),
    "mask_empty": (["--mask", ""], 2, "mask"),
    "score_bool": (["--score", "q < k"], 2, "score"),
    "definition_broken": (["--definitions", "near(a = q"], 2, "definitions"),
    "argument_no_value": (["--mask", "k < n", "--arg", "n"], 2, "--arg"),
    "argument_no_name": (["--arg", "=3"], 2, "--arg"),
    "argument_no_file": (["--mask", "k < n", "--arg", "n=none.npy"], 2, "none.npy"),
    "argument_unused": (["--arg", "n=3"], 2, "'n'"),
    "argument_twice": (["--mask", "k < n", "--arg", "n=3", "--arg", "n=4"], 2, "'n'"),
    "argument_reserved": (["--mask", "k < q", "--arg", "q=3"], 2, "q"),
    "lse_is_out": (["--lse", "OUT"], 2, "--lse"),
    "sink_no_file": (["--sink", "sink.npy"], 2, "--sink"),
}


@pytest.mark.parametrize("name", RUN)
def test_run_option(onepass, qkv, tmp_path, name):
    _, arguments = qkv()
    extra, code, fragment = RUN[name]
    extra = [str(tmp_path / "o.npy") if word == "OUT" else word for word in extra]
    check(onepass(*arguments, *extra, cwd=tmp_path), code, fragment)
    assert not (tmp_path / "o.npy").exists()


SHAPES = {
    "three_dims": ("q", (6, 4, 8), "q"),
    "batch": ("k", (2, 9, 2, 8), "k"),
    "head_dim": ("k", (1, 9, 2, 16), "k"),
    "lengths": ("v", (1, 8, 2, 8), "v"),
    "heads_do_not_divide": ("q", (1, 6, 3, 8), "k"),
    "kv_heads_differ": ("v", (1, 9, 1, 8), "v"),
    "scalar": ("v", (), "v"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(onepass, qkv, tmp_path, name):
    _, arguments = qkv()
    which, shape, argument = SHAPES[name]
    np.save(tmp_path / f"{which}.npy", np.zeros(shape, np.float32))
    check(onepass(*arguments), 2, f"{argument}: ")


@pytest.mark.parametrize("dtype", (np.int32, np.int64, np.bool_, np.uint8, np.float64))
def test_dtype(onepass, qkv, tmp_path, dtype):
    _, arguments = qkv()
    np.save(tmp_path / "k.npy", np.zeros((1, 9, 2, 8), dtype))
    check(onepass(*arguments), 2, "k: ")


def test_files_that_are_not_there(onepass, qkv, tmp_path):
    _, arguments = qkv()
    for path in (tmp_path / "none.npy", tmp_path):
        check(onepass(*arguments[:4], path, *arguments[5:]), 2, "--q: ")
    check(onepass("run", "--q", "q.npy"), 2, "--k")


def test_output_that_cannot_be_written(onepass, qkv, tmp_path):
    _, arguments = qkv()
    arguments[2] = tmp_path / "none" / "o.npy"
    check(onepass(*arguments), 1, "o.npy: ")
    arguments[2] = "/dev/full"
    check(onepass(*arguments), 1, "/dev/full: ")


VERBS = {
    "none": ([], 2, "no verb"),
    "explain_dim": (["explain", "fwd f32 s=8 mask=k<n[b] n=int32[x]"], 2, 'the dim "x"'),
    "demo_model": (["demo", "--text", __file__, "--model", "/none", "--out", "/dev/null"], 2,
                   "--model"),
    "unknown": (["rnu"], 2, "rnu"),
    "explain_nothing": (["explain"], 2, "line"),
    "explain_empty": (["explain", ""], 2, "column 1"),
    "explain_direction": (["explain", "dfw f32 s=8"], 2, "column 1"),
    "explain_no_dtype": (["explain", "fwd s=8"], 2, "dtype"),
    "explain_dtype": (["explain", "fwd f12 s=8"], 2, "column 5"),
    "explain_size": (["explain", "fwd f32 s=8/x"], 2, "column 9"),
    "explain_size_negative": (["explain", "fwd f32 s=-8"], 2, "column 9"),
    "explain_size_huge": (["explain", "fwd f32 s=9999999999999999"], 2, "column 9"),
    "explain_twice": (["explain", "fwd f32 s=8 s=9"], 2, "column 13"),
    "explain_quote": (["explain", 'fwd f32 mask="q < k'], 2, "column 14"),
    "bench_heads": (["bench", "fwd f32 s=8 heads=8"], 2, "write h=8"),
    "explain_seqlen": (["explain", "fwd f32 seqlen=8"], 2, "write s=8"),
    "explain_causal": (["explain", "fwd f32 s=8 causal=true"], 2, "write mask=causal"),
    "explain_bare": (["explain", "fwd f32 causal"], 2, "column 9"),
    "explain_heads": (["explain", "fwd f32 h=3/2 s=8"], 2, "k: "),
    "explain_mask": (["explain", "fwd f32 s=8 mask=casual"], 2, "mask, column 1"),
    "explain_generator": (["explain", "fwd f32 s=8 mask=k<n n=some"], 2, "n: "),
    "explain_documents": (
        ["explain", "fwd f32 s=8 mask=document(i) i=documents(0)"], 2, "documents"),
    "explain_list": (["explain", "fwd f32 s=8 mask=k<n[0] n=[1,x]"], 2, "n: "),
    "explain_head": (["explain", "fwd f32 s=8 mask=causal", "--head", "1"], 2, "--head"),
    "explain_start": (["explain", "fwd f32 s=8 q_start=[1,]"], 2, "q_start"),
    "explain_picture": (
        ["explain", "fwd f32 s=8 mask=causal", "--svg", "/none/map.svg"], 1, "map.svg"),
    "bench_suite": (["bench", "--suite", "large"], 2, "--suite"),
    "bench_format": (["bench", "--format", "xml"], 2, "--format"),
    "bench_runs": (["bench", "--runs", "0"], 2, "--runs"),
    "bench_memory": (["bench", "fwd f32 b=1000000 h=1000 s=1000000"], 1, "memory"),
    "profile_memory": (["profile", "fwd f32 b=1000000 h=1000 s=1000000"], 1, "memory"),
    "bench_long": (["bench", "fwd f32 s=1000000000000"], 1, "3072000000000000 bytes"),
    "profile_long": (["profile", "fwd f32 s=1000000000000"], 1, " bytes"),
    "profile_matrix": (["profile", "fwd f32 s=4000000 d=1"], 1, "64000192000000 bytes"),
    "explain_long": (["explain", "fwd f32 s=1000000000000 mask=causal"], 1, " bytes"),
    "explain_long_array": (
        ["explain", "fwd f32 s=1000000000000 mask=document(i) i=documents(8)"], 1,
        "4000000000000 bytes"),
    "explain_head_dim": (["explain", "fwd f32 s=8 d=577"], 2, "577"),
    "explain_out": (["explain", "fwd f32 s=8 out=f16"], 2, "allowed: float32;"),
    "explain_argument": (["explain", "fwd f32 s=8 mask=k<n n=1e400"], 2, "float64"),
    "bench_seconds": (["bench", "--seconds", "-1"], 2, "--seconds"),
    "bench_seconds_nan": (["bench", "--seconds", "nan"], 2, "--seconds"),
    "bench_seconds_inf": (["bench", "--seconds", "inf"], 2, "--seconds"),
    "learn_scale_nan": (["learn", "--scale", "nan"], 2, "--scale"),
    "learn_scale_inf": (["learn", "--scale", "inf"], 2, "--scale"),
    "learn_scale_large": (["learn", "--scale", "1e300"], 2, "--scale"),
    "learn_picture": (["learn", "--svg", "/none/order.svg"], 1, "--svg"),
    "demo_folder": (["demo", "--text", __file__, "--out", "/dev/null"], 1, "--out"),
    "demo_text": (["demo", "--text", "/none.md"], 2, "--text"),
}


@pytest.mark.parametrize("name", VERBS)
def test_verb(onepass, name):
    arguments, code, fragment = VERBS[name]
    check(onepass(*arguments, timeout=10), code, fragment)


def test_instruction_set_that_is_not_here(onepass, qkv):
    _, arguments = qkv()
    check(onepass(*arguments, env={"ONEPASS_ISA": "mmx"}), (2, 3), "ONEPASS_ISA")


@pytest.mark.parametrize("lengths", ("q_lens=[5,6] k_lens=[9,2]", "b=2 s=6/12 k_lens=[5,7]",
                                     "b=2 s=8 k_used=[5,3]",
                                     "b=2 s=3/16 k_used=[5,7] page=4 new=2"))
def test_profile_takes_one_length(onepass, lengths):
    result = onepass("profile", f"fwd f32 h=2 {lengths}")
    check(result, 2, "line: has q_lens, k_lens, k_used or page")
