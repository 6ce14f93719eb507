"""Problem lines: explain, bench, profile and demo understand them, and print them back."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

LINES = (
    "fwd f32 b=1 h=2 s=256 d=64",
    "fwd bf16 b=2 h=8/2 s=64/256 d=128 mask=causal",
    "fwd f16 b=1 h=2 s=100 d=192/128 mask=window(31,0)",
    "fwd f64 b=1 h=1 s=64 d=16 out=f64 mask=causal scale=0.25",
    'fwd f32 b=2 h=2 s=128 d=32 mask="q - 5 < k & k <= q" score="s * 0.5"',
    "fwd f32 b=1 h=2 s=128 d=32 mask=document(ids) ids=documents(4)",
    "fwd f32 b=2 h=4 s=128 d=32 score=alibi(s,m) m=alibi",
    "fwd f32 b=3 h=2 s=128 d=32 mask=lengths(n) n=[128,5,0]",
    "fwd f32 b=1 h=2 s=64 d=32 score=bias(s,m) m=random",
    "fwd f32 b=1 h=2 s=64 d=32 mask=dense(m) m=bool[1,1,s_q,s_kv]",
    "fwd f32 b=2 h=2 s=64/128 d=32 mask=causal q_start=[3,64] k_start=2",
    "fwd f32 b=1 h=2 s=64 d=32 mask=causal align=top_left sink=random",
    "fwd f32 b=1 h=1 s=64 d=8 mask=k<n&k>=m n=40 m=3",
    "fwd f32 b=1 h=1 s=64 d=8 dropout=0.25 seed=18446744073709551615 offset=3 row0=16 col0=32",
)


def problem_of(text):
    return re.search(r"^problem +(.*)$", text, re.MULTILINE).group(1)


@pytest.mark.parametrize("line", LINES)
def test_explain_and_its_line_pasted_back(onepass, line):
    first = onepass("explain", line)
    assert first.returncode == 0, first.stderr
    assert first.stderr == "" and "\x1b" not in first.stdout
    for word in ("kernel", "tile", "workspace", "yes"):
        assert re.search(rf"^{word}\b", first.stdout, re.MULTILINE), first.stdout
    printed = problem_of(first.stdout)
    again = onepass("explain", printed)
    assert again.returncode == 0, again.stderr
    assert problem_of(again.stdout) == printed


def test_words_do_for_quotes(onepass):
    whole = onepass("explain", 'fwd f32 s=64 mask="q - 5 < k"')
    words = onepass("explain", "fwd", "f32", "s=64", "mask=q - 5 < k")
    assert whole.returncode == words.returncode == 0, words.stderr
    assert whole.stdout == words.stdout


def test_tile_map_of_a_causal_mask(onepass, tmp_path):
    picture = tmp_path / "map.svg"
    line = 'fwd f32 b=1 h=1 s=4096 d=64 mask="q - 9999 < k & k <= q"'
    result = onepass("explain", line, "--svg", picture)
    assert result.returncode == 0, result.stderr
    rows, keys, total, skipped, full, partial = map(int, re.search(
        r"(\d+) x (\d+) = (\d+); (\d+) skipped.*?(\d+) full.*?(\d+) partial",
        result.stdout).groups())
    assert rows * keys == total == skipped + full + partial
    assert skipped > 0.35 * total and full > 0.35 * total and partial < 0.2 * total
    grid = re.findall(r"^  ([.#+]+)$", result.stdout, re.MULTILINE)
    assert len(grid) == rows and all(len(line) == keys for line in grid)
    assert grid[0].endswith(".") and grid[-1].startswith("#")
    root = ElementTree.parse(picture).getroot()
    assert root.tag.endswith("svg")
    assert len(root.findall(".//{*}rect")) > 10
    assert line in "".join(root.itertext())


def test_refused_kernels_give_a_reason(onepass):
    result = onepass("explain", "fwd f32 s=64", env={"ONEPASS_ISA": "baseline"})
    assert result.returncode == 0, result.stderr
    refusals = re.findall(r"^no +(\S+): (.+)$", result.stdout, re.MULTILINE)
    assert refusals and all(reason.strip() for _, reason in refusals)


def test_bench_formats(onepass):
    line = "fwd f32 b=1 h=2 s=128 d=32 mask=causal"
    common = ("bench", line, "--runs", 5, "--threads", 1)
    markdown, table, lines = (onepass(*common, "--format", f) for f in ("md", "csv", "jsonl"))
    for result in (markdown, table, lines):
        assert result.returncode == 0, result.stderr
        assert "\x1b" not in result.stdout + result.stderr
        assert "warm" in result.stderr and "[1/1]" in result.stderr
    rows = markdown.stdout.strip().splitlines()
    assert len(rows) == 3 and all(row.count("|") == rows[0].count("|") for row in rows)
    assert "causal" in rows[2]
    (row,) = csv.DictReader(io.StringIO(table.stdout))
    entry = json.loads(lines.stdout)
    for found in (row, entry):
        assert found["problem"] == line and int(found["runs"]) == 5
        assert float(found["visible"]) == pytest.approx(129 / 256, abs=1e-5)
        assert 0 < float(found["min_s"]) <= float(found["median_s"]) <= float(found["p90_s"])
        assert 0 < float(found["share_percent"]) < 110
        assert float(found["error"]) < 1e-5
    work = 2 * (32 + 32) * 2 * 128 * 129 / 2
    assert entry["gflops"] == pytest.approx(work / entry["median_s"] * 1e-9, rel=1e-2)


@pytest.mark.parametrize(("line", "visible"), (
    ("fwd f32 b=1 h=2 s=100 d=16 mask=window(9,0)", (100 * 10 - 45) / 1e4),
    ("fwd f32 b=3 h=2 s=64 d=16 mask=lengths(n) n=[64,32,0]", 0.5),
    ("fwd f32 b=1 h=4 s=64 d=16 mask=h<2&causal", 0.5 * 65 / 128),
    ("fwd f32 b=1 h=2 s=64/96 d=16 mask=k%2==0", 0.5),
))
def test_bench_counts_visible_pairs(onepass, line, visible):
    result = onepass("bench", line, "--runs", 1, "--format", "jsonl")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["visible"] == pytest.approx(visible, abs=1e-6)


def test_bench_checks_dropout(onepass):
    result = onepass("bench", "fwd f32 b=1 h=2 s=64 d=8 dropout=0.5 seed=9", "--runs", 1)
    assert result.returncode == 0, result.stderr


def test_bench_says_when_it_runs_less(onepass):
    result = onepass("bench", "fwd f32 b=1 h=1 s=512 d=64", "--seconds", 0, "--format", "jsonl")
    assert json.loads(result.stdout)["runs"] == 3


@pytest.mark.parametrize("line", (
    "fwd f32 b=1 h=4/2 s=200/300 d=40/24 mask=causal",
    "fwd bf16 b=2 h=2 s=128 d=64 mask=window(15,0) score=softcap(s,20) sink=random",
    "fwd f64 b=2 h=2 s=130 d=16 mask=lengths(n) n=[130,7]",
))
def test_profile(onepass, line):
    result = onepass("profile", line, "--runs", 2)
    assert result.returncode == 0, result.stderr
    for words in ("scores = q k^T", "scale, score, mask", "softmax", "output = p v", "one pass",
                  "MiB moved", "memory beyond", "speed-up"):
        assert words in result.stdout
    difference = float(re.search(r"between the two (\S+)", result.stdout).group(1))
    assert difference < (3e-2 if "bf16" in line else 1e-5)


def test_demo(onepass, model_folder, tmp_path):
    text = tmp_path / "text.md"
    text.write_text("Once upon a time there was a dog.\n\nIt ran into the park.\n\n" * 8)
    result = onepass("demo", "--text", text, "--model", model_folder, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("error to float64") == 3
    assert result.stdout.count("speed-up") == 3
    pictures = re.findall(r"picture +(\S+)", result.stdout)
    assert len(pictures) == 3
    for picture in pictures:
        ElementTree.parse(picture)


def test_demo_without_a_model(onepass, tmp_path):
    text = tmp_path / "text.md"
    text.write_text("A few words.\n")
    result = onepass("demo", "--text", text, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("speed-up") == 2


def test_learn_shows_a_nan_and_fails(onepass):
    """Scores beyond float32 are NaN there and right in float64."""
    result = onepass("learn", "--s", 16, "--d", 8, "--scale", "3e38")
    assert result.returncode == 1, result.stdout
    errors = re.search(r"largest error against float64(.*)", result.stdout).group(1).split()
    assert len(errors) == 3 and errors.count("nan") == 2
    assert result.stderr.count("NaN where float64 has none") == 2


@pytest.mark.parametrize("verb", ("bench", "profile"))
def test_wrong_answers_fail(onepass, verb):
    """The library's score is made in float32 here and overflows; the reference's does not."""
    result = onepass(verb, 'fwd f32 s=8 score="s * 1e30 * 1e30 * 1e-30 * 1e-30"', "--runs", 1)
    assert result.returncode == 1 and "nan" in result.stdout
    assert "onepass: answer: error nan to float64; up to " in result.stderr


def test_printed_lines_keep_folded_arguments(onepass):
    for line, argument in (("mask=k>=n n=1", "n=1"), ("mask=k<m*0+q m=7", "m=7"),
                           ("mask=on&causal on=true", "on=true"), ("score=s*c c=1", "c=1")):
        first = onepass("explain", "fwd f32 s=64 " + line)
        assert first.returncode == 0, first.stderr
        printed = problem_of(first.stdout)
        assert printed.endswith(" " + argument)
        assert problem_of(onepass("explain", printed).stdout) == printed


def test_help_and_version(onepass):
    assert re.fullmatch(r"onepass \d+\.\d+\.\d+\n", onepass("--version").stdout)
    for verb in ("run", "bench", "profile", "explain", "generate", "demo"):
        result = onepass(verb, "--help")
        assert result.returncode == 0 and result.stderr == "" and "--threads" in result.stdout


@pytest.mark.parametrize("line", ["bwd f32 s=8 mask=row==col", "bwd f32 b=2 s=8 k_used=[1,1]",
                                  "bwd f32 s=8 scale=1e-45", "fwd bf16 b=1 h=1 s=1/2 d=64"])
def test_answers_that_cancel_or_are_few_are_right(onepass, line):
    result = onepass("bench", line, "--runs", 1)
    assert result.returncode == 0, result.stderr
