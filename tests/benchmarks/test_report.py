"""The benchmark's report, and what may be chosen."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from benchmarks.options import Options
from benchmarks.report import (
    Measurement,
    geometric_mean,
    markdown,
    picture,
    ratio_picture,
    ratios,
    restored,
    stored,
)
from benchmarks.spark_engine import covered

FOUND = [
    Measurement(
        workload="upsert",
        engine="puredelta",
        seconds=(1.0, 3.0, 2.0),
        cpu_seconds=(4.0, 6.0, 5.0),
        jobs=4,
        outside_seconds=0.25,
        memory_mb={"driver Java": 900.4, "driver Python": 300.0, "executor Java": 0.0},
        heap_mb=512.3,
    ),
    Measurement(
        workload="upsert",
        engine="delta-spark",
        seconds=(8.0,),
        cpu_seconds=(50.0,),
        memory_mb={"driver Java": 2400.8},
    ),
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
    assert "| upsert | 4 jobs, 0.25 s |" in text
    assert "| upsert | 1200 | 2401 | - | 0.50 | - |" in text
    assert "| upsert | driver Java 900, driver Python 300, heap 512 | driver Java 2401 |" in text
    assert "- delete, delta-rs: 3 rows instead of 4" in text


def test_measurements_are_stored() -> None:
    assert restored(stored(FOUND, "Size S")) == FOUND


def test_ratios_compare_what_both_have() -> None:
    assert ratios(FOUND, "puredelta", "delta-spark") == {"upsert": 0.25, "delete": 0.5}
    assert ratios(FOUND, "puredelta", "delta-rs") == {}
    assert geometric_mean([]) is None


def test_the_picture_is_well_formed() -> None:
    drawn = ET.fromstring(picture(FOUND, "a < b"))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "upsert", "2.00 s", "8.00 s"} <= set(texts)
    assert picture([], "nothing").startswith("<svg")


def test_the_picture_of_ratios_has_a_bar_for_each_and_their_mean() -> None:
    text = ratio_picture(FOUND, "Size S", engine="puredelta", base="delta-spark")
    drawn = ET.fromstring(text)
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[1:] == ["upsert", "0.25", "delete", "0.50", "geometric mean", "0.35"]
    widths = [one.get("width") for one in drawn.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == ["500.0", "125.0", "500.0", "250.0", "500.0", "176.8"]


def test_choices() -> None:
    options = Options.of({})
    assert (options.size, options.repeats, len(options.workloads)) == ("S", 3, 13)
    chosen = Options.of({"PUREDELTA_BENCH_WORKLOADS": "upsert (1, ;convert"})
    assert [w.title for w in chosen.workloads] == [
        "upsert (1, .01, .001)",
        "convert_files (1000)",
        "convert_partitioned (100 x 5)",
        "convert_files (10000)",
        "convert_partitioned (1000 x 5)",
        "convert_files (100000)",
        "convert_wide_files (10000)",
        "convert_wide_partitioned (1000 x 5)",
    ]
    bigger = Options.of({"PUREDELTA_BENCH_SIZE": "M", "PUREDELTA_BENCH_ENGINES": "all"})
    converted = bigger.workloads[-1]
    assert converted.title == "convert_partitioned (1000 x 5)"
    names = ["puredelta", "delta-spark", "delta-rs"]
    assert [engine.name for engine in bigger.engines_for(converted)] == names
    assert len(bigger.engines_for(bigger.workloads[0])) == 7
    for wrong in ({"SIZE": "XL"}, {"ENGINES": "hudi"}, {"WORKLOADS": "nothing"}):
        with pytest.raises(SystemExit, match="no "):
            Options.of({f"PUREDELTA_BENCH_{key}": value for key, value in wrong.items()})


def test_time_covered_by_jobs_counts_once() -> None:
    assert covered([(0, 10), (5, 12), (20, 21), (20, 20)]) == 13
    assert covered([]) == 0
