"""Tasks reach their functions, as tuples and as rows of Arrow."""

from __future__ import annotations

import pickle
import sys
import zlib

import pyarrow as pa

from puredelta.worker.bootstrap import UNPACKED, run_rows, run_stream, run_task, unpacked

FUNCTIONS = [zlib.compress(pickle.dumps(function)) for function in (len, abs)]
MISSING = b"cno_such_module\nf\n."


def test_a_task_calls_the_function_of_its_number() -> None:
    assert run_task(FUNCTIONS, (0, pickle.dumps("text"))) == [(0, None, 4)]
    assert run_task(FUNCTIONS, (1, pickle.dumps(-3))) == [(1, None, 3)]


def test_what_is_missing_is_said_in_one_line() -> None:
    ((number, refusal, answer),) = run_task([zlib.compress(MISSING)], (0, pickle.dumps(1)))
    assert (number, answer) == (0, None)
    assert refusal == "ModuleNotFoundError on a worker: No module named 'no_such_module'"


def test_rows_of_arrow_are_tasks() -> None:
    tasks = [(0, pickle.dumps("text")), (1, pickle.dumps(-3))]
    batch = pa.record_batch(list(zip(*tasks, strict=True)), ["function", "argument"])
    found = list(run_rows(FUNCTIONS, [batch]))
    assert found[0].schema == pa.schema([("answer", pa.binary())])
    answers = [pickle.loads(row["answer"]) for one in found for row in one.to_pylist()]
    assert answers == [(0, None, 4), (1, None, 3)]


class Counted:
    """Counts how often it is unpickled."""

    times = 0

    def __reduce__(self) -> tuple[object, ...]:
        return count_up, ()


def count_up() -> object:
    Counted.times += 1
    return lambda argument, batches: [argument, *batches]


def test_a_worker_unpacks_a_function_once() -> None:
    Counted.times = 0
    code = zlib.compress(pickle.dumps(Counted()))
    for number in range(3):
        # Each task brings bytes of its own.
        assert list(run_stream(bytes(bytearray(code)), number, "ab")) == [number, "a", "b"]
    assert Counted.times == 1


def test_a_worker_keeps_few_functions() -> None:
    codes = [zlib.compress(pickle.dumps(len) + bytes(number)) for number in range(40)]
    assert all(unpacked(code) is len for code in codes)
    assert len(vars(sys.modules[UNPACKED])["functions"]) <= 16
    assert unpacked(codes[0]) is len


def test_a_function_whose_libraries_are_missing_is_tried_again() -> None:
    code = zlib.compress(MISSING)
    for _ in range(2):
        ((_, refusal, _),) = run_task([code], (0, pickle.dumps(1)))
        assert refusal is not None
    assert code not in vars(sys.modules[UNPACKED])["functions"]
