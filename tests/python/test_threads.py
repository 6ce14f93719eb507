"""Threads of the library and threads of Python."""

import threading

import numpy as np
import onepass
import pytest
from problems import DTYPES, inputs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("s_q, s_kv", ((1, 700), (90, 130)))
def test_results_do_not_depend_on_the_thread_count(dtype, s_q, s_kv):
    q, k, v = inputs(1, s_q, s_kv, 4, 2, 32, dtype=dtype)
    runs = [onepass.attention(q, k, v, mask="causal", return_lse=True, threads=n)
            for n in (1, 2, 3, 8)]
    for o, lse in runs[1:]:
        assert o.tobytes() == runs[0][0].tobytes()
        assert lse.tobytes() == runs[0][1].tobytes()


def test_threads_of_python_run_at_once():
    q, k, v = inputs(1, 200, 200, 2, 2, 32, dtype=np.float32)
    expected = onepass.attention(q, k, v).tobytes()
    failures, start = [], threading.Barrier(4)

    def work():
        start.wait()
        for _ in range(20):
            if onepass.attention(q, k, v, threads=2).tobytes() != expected:
                failures.append("a result differs")

    workers = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
        assert not worker.is_alive(), "two calls wait for each other"
    assert not failures


def test_python_runs_while_a_call_computes():
    q = np.ones((1, 6000, 4, 64), np.float32)
    finished = threading.Event()

    def work():
        onepass.attention(q, q, q, threads=1)
        finished.set()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    turns = 0
    while not finished.wait(timeout=0.001):
        turns += 1
    worker.join(timeout=60)
    assert turns > 10  # a call that kept the lock would leave one or two
