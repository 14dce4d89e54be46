"""The benchmark's report, its choices, and what an engine's process answers."""

from __future__ import annotations

import io
import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.__main__ import Options
from benchmarks.engine_process import covered, peaks, serve
from benchmarks.report import Measurement, geometric_mean, markdown, picture, ratios

FOUND = [
    Measurement(
        workload="upsert",
        engine="puredelta",
        seconds=(1.0, 3.0, 2.0),
        cpu_seconds=(4.0, 6.0, 5.0),
        jobs=4,
        outside_seconds=0.25,
        memory_mb={"java": 900.4, "python": 300.0},
    ),
    Measurement(workload="upsert", engine="delta-spark", seconds=(8.0,), cpu_seconds=(50.0,)),
    Measurement(workload="delete", engine="puredelta", seconds=(1.0,)),
    Measurement(workload="delete", engine="delta-spark", seconds=(2.0,)),
    Measurement(workload="delete", engine="delta-rs", problem="3 rows instead of 4"),
]


def test_the_report_has_medians_ratios_and_what_failed() -> None:
    text = markdown(FOUND, "Size S")
    assert "| upsert | 2.00 | 8.00 | - | 0.25 | - |" in text
    assert "| delete | 1.00 | 2.00 | failed | 0.50 | - |" in text
    assert "| geometric mean |  |  |  | 0.35 | - |" in text
    assert "| worst |  |  |  | 0.50 | - |" in text
    assert "| upsert | 5.00 | 50.00 | - | 0.10 | - |" in text
    assert "| upsert | 4 jobs, 0.25 s, 900 + 300 |" in text
    assert "- delete, delta-rs: 3 rows instead of 4" in text


def test_ratios_compare_what_both_have() -> None:
    assert ratios(FOUND, "puredelta", "delta-spark") == {"upsert": 0.25, "delete": 0.5}
    assert ratios(FOUND, "puredelta", "delta-rs") == {}
    assert geometric_mean([]) is None


def test_the_picture_is_well_formed() -> None:
    drawn = ET.fromstring(picture(FOUND, "a < b"))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "upsert", "2.00 s", "8.00 s"} <= set(texts)
    assert picture([], "nothing").startswith("<svg")


def test_choices() -> None:
    options = Options.of({})
    assert (options.size, options.repeats, len(options.workloads)) == ("S", 3, 13)
    chosen = Options.of({"PUREDELTA_BENCH_WORKLOADS": "upsert (1, ;convert"})
    assert [w.title for w in chosen.workloads] == [
        "upsert (1, .01, .001)",
        "convert_files",
        "convert_partitioned",
    ]
    for wrong in ({"SIZE": "XL"}, {"ENGINES": "hudi"}, {"WORKLOADS": "nothing"}):
        with pytest.raises(SystemExit, match="no "):
            Options.of({f"PUREDELTA_BENCH_{key}": value for key, value in wrong.items()})


def test_a_request_that_fails_is_answered_too() -> None:
    class Moody:
        def prepare(self, request: dict[str, Any]) -> Any:
            if request["do"] == "fail":
                raise ValueError("as asked")
            return lambda: None

        def jobs(self) -> dict[str, Any]:
            return {"jobs": 2}

    answers = io.StringIO()
    serve(Moody(), ['{"do": "fail"}', '{"do": "merge"}'], answers)
    failed, done = map(json.loads, answers.getvalue().splitlines())
    assert failed == {"error": "ValueError: as asked"}
    assert done["jobs"] == 2
    assert done["seconds"] >= 0
    assert done["cpu_seconds"] >= 0
    assert done["memory_mb"].keys() == peaks().keys()


def test_time_covered_by_jobs_counts_once() -> None:
    assert covered([(0, 10), (5, 12), (20, 21), (20, 20)]) == 13
    assert covered([]) == 0
