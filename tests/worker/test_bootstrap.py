"""Tasks reach their functions, as tuples and as rows of Arrow."""

from __future__ import annotations

import pickle

import pyarrow as pa

from puredelta.worker.bootstrap import run_rows, run_task

FUNCTIONS = [pickle.dumps(len), pickle.dumps(abs)]


def test_a_task_calls_the_function_of_its_number() -> None:
    assert run_task(FUNCTIONS, (0, pickle.dumps("text"))) == [(0, None, 4)]
    assert run_task(FUNCTIONS, (1, pickle.dumps(-3))) == [(1, None, 3)]


def test_what_is_missing_is_said_in_one_line() -> None:
    ((number, refusal, answer),) = run_task([b"cno_such_module\nf\n."], (0, pickle.dumps(1)))
    assert (number, answer) == (0, None)
    assert refusal == "ModuleNotFoundError on a worker: No module named 'no_such_module'"


def test_rows_of_arrow_are_tasks() -> None:
    tasks = [(0, pickle.dumps("text")), (1, pickle.dumps(-3))]
    batch = pa.record_batch(list(zip(*tasks, strict=True)), ["function", "argument"])
    found = list(run_rows(FUNCTIONS, [batch]))
    assert found[0].schema == pa.schema([("answer", pa.binary())])
    answers = [pickle.loads(row["answer"]) for one in found for row in one.to_pylist()]
    assert answers == [(0, None, 4), (1, None, 3)]
