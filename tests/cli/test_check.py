"""onepass check: a row a case, a line of counts, and an exit code."""

import re


def test_rows_and_counts(onepass):
    result = onepass("check", "D01", "D27")
    assert result.returncode == 0, result.stdout + result.stderr
    rows = result.stdout.strip().splitlines()
    assert len(rows) >= 3 and rows[-1] == f"{len(rows) - 1} passed, 0 failed"
    assert all(re.fullmatch(r"pass  D(01|27)\.\w+ .*", row) for row in rows[:-1])


def test_list_runs_nothing(onepass):
    result = onepass("check", "--list", timeout=10)
    assert result.returncode == 0 and "passed" not in result.stdout
    assert len(result.stdout.splitlines()) > 20


def test_unknown_case(onepass):
    result = onepass("check", "X99")
    assert result.returncode == 2 and "X99" in result.stderr and result.stdout == ""
