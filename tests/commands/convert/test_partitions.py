"""C-40 to C-48: partition values from directory names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from puredelta.commands.convert.partitions import (
    PartitionRules,
    PartitionValues,
    is_log_spelling,
    parse_levels,
    read_partitions,
)
from puredelta.errors import InvalidRequestError
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
)

ROOT = "file:/t"


def never_cast(data_type: DataType, texts: Sequence[str]) -> Mapping[str, str | None]:
    raise AssertionError(f"Spark was asked about {texts} as {data_type}")


def cast_from(answers: Mapping[str, str | None]):
    def cast(_: DataType, texts: Sequence[str]) -> Mapping[str, str | None]:
        return {text: answers.get(text) for text in texts}

    return cast


def read(paths: Sequence[str], columns: dict[str, DataType], **rules) -> list[PartitionValues]:
    rules.setdefault("cast", never_cast)
    fields = tuple(StructField(name, data_type) for name, data_type in columns.items())
    return list(read_partitions(paths, ROOT, PartitionRules(columns=fields, **rules)).values())


def refusal(paths: Sequence[str], columns: dict[str, DataType], **rules) -> tuple[str, str]:
    with pytest.raises(InvalidRequestError) as refused:
        read(paths, columns, **rules)
    return refused.value.getErrorClass(), refused.value.message


# --- directories ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "levels"),
    [
        ("", ()),
        ("plain/dir", ()),
        ("a=1/b=x", (("a", "1"), ("b", "x"))),
        ("k=a=b", (("k", "a=b"),)),
        ("k=%20x%2Fy", (("k", " x/y"),)),
        ("k%20k=1", (("k k", "1"),)),
        ("k=1%zz", (("k", "1%zz"),)),
        ("k=é ü", (("k", "é ü"),)),
        ("above/k=1", (("k", "1"),)),
        ("k=1/below", (("k", "1"),)),
        ("j=1/between/k=2", (("k", "2"),)),
        ("k=__HIVE_DEFAULT_PARTITION__", (("k", None),)),
        ("_k=1/.p=2", (("_k", "1"), (".p", "2"))),
    ],
)
def test_levels_of_a_directory(directory: str, levels: object) -> None:
    """C-42, C-43, C-46; the cases were run against delta-spark 4.4.0."""
    assert parse_levels(directory, "") == levels


@pytest.mark.parametrize(("directory", "half"), [("k=", "value in 'k='"), ("=v", "name in '=v'")])
def test_c_43_an_empty_half_is_refused(directory: str, half: str) -> None:
    _, message = refusal([f"{directory}/f"], {"k": STRING})
    assert f"Empty partition column {half}" in message
    assert f"file:/t/{directory}/f" in message


@pytest.mark.parametrize("value", [*"!@$&-+<>|,;~(){}^[]*?#%\\: '\"", "%!@#$^&*-?.+<_>|/ x"])
def test_c_46_special_characters(value: str) -> None:
    escaped = "".join(f"%{ord(c):02X}" if c in "%/" else c for c in value)
    assert read([f"k={escaped}/f"], {"k": STRING}) == [{"k": value}]


# --- columns ----------------------------------------------------------------------------------


def test_c_40_nothing_is_inferred() -> None:
    error_class, message = refusal(["part=1/f"], {})
    assert error_class == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    assert message == (
        "Expecting 0 partition column(s): [], but found 1 partition column(s): [`part`] from "
        "parsing the file name: file:/t/part=1/f. Pass names and types of the partition columns, "
        "such as 'part STRING' (PARTITIONED BY), or 'infer' to convertToDelta."
    )


def test_c_40_every_file_lies_in_all_levels() -> None:
    error_class, message = refusal(["a=1/b=2/f", "a=1/g"], {"a": INTEGER, "b": INTEGER})
    assert error_class == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    assert "Expecting 2 partition column(s): [`a`, `b`]" in message
    assert message.endswith("file:/t/a=1/g")


def test_c_41_c_48_names_and_their_order() -> None:
    error_class, message = refusal(["a=1/b=2/f"], {"b": INTEGER, "a": INTEGER})
    assert error_class == "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"
    assert message == (
        "Expecting partition column `b`, but found partition column `a` from parsing the file "
        "name: file:/t/a=1/b=2/f"
    )


def test_c_41_c_47_case() -> None:
    assert read(["PART=1/f"], {"part": INTEGER}) == [{"part": "1"}]
    error_class, _ = refusal(["PART=1/f"], {"part": INTEGER}, case_sensitive=True)
    assert error_class == "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"


def test_a_null_partition_of_a_required_column() -> None:
    fields = (StructField("k", STRING, nullable=False),)
    rules = PartitionRules(columns=fields, cast=never_cast)
    with pytest.raises(InvalidRequestError, match="NOT NULL constraint violated for column: k"):
        read_partitions(["k=__HIVE_DEFAULT_PARTITION__/f"], ROOT, rules)


# --- values -----------------------------------------------------------------------------------


def test_c_44_c_45_well_spelt_values_are_stored_to_the_letter() -> None:
    columns = {"m": INTEGER, "d": DATE, "t": TIMESTAMP, "x": DecimalType(5, 2)}
    path = "m=01/d=2024-01-02/t=2024-01-02 03%3A04%3A05.6/x=1.5/f"
    assert read([path], columns) == [
        {"m": "01", "d": "2024-01-02", "t": "2024-01-02 03:04:05.6", "x": "1.5"}
    ]


def test_other_spellings_that_spark_knows_are_stored_as_the_log_wants_them() -> None:
    asked = cast_from({"yes": "true"})
    assert read(["k=yes/f", "k=false/f"], {"k": BOOLEAN}, cast=asked) == [
        {"k": "true"},
        {"k": "false"},
    ]


def test_c_44_what_is_no_value_is_refused() -> None:
    error_class, message = refusal(["k=1/f", "k=x1/g"], {"k": INTEGER}, cast=cast_from({}))
    assert error_class == "DELTA_FAILED_CAST_PARTITION_VALUE"
    assert message.startswith("Failed to cast partition value `x1` to IntegerType")
    assert message.endswith("file:/t/k=x1/g")


def test_c_44_or_reads_as_null() -> None:
    values = read(["k=x1/f"], {"k": INTEGER}, cast=cast_from({}), ignore_cast_failure=True)
    assert values == [{"k": None}]


def test_each_text_is_judged_once_and_each_directory_is_shared() -> None:
    asked: list[Sequence[str]] = []

    def cast(_: DataType, texts: Sequence[str]) -> Mapping[str, str | None]:
        asked.append(texts)
        return dict.fromkeys(texts, "true")

    paths = [f"k=yes/j={j}/{file}" for j in range(3) for file in range(5)]
    assert len(read(paths, {"k": BOOLEAN, "j": INTEGER}, cast=cast)) == 3
    assert asked == [["yes"]]


@pytest.mark.parametrize(
    ("text", "data_type", "expected"),
    [
        ("-128", BYTE, True),
        ("128", BYTE, False),
        (" 1", INTEGER, False),
        ("1.0", INTEGER, False),
        ("1_000", INTEGER, False),
        ("\u0661", INTEGER, False),
        ("1.25", DecimalType(3, 2), True),
        ("1.250", DecimalType(3, 2), False),
        ("10", DecimalType(3, 2), False),
        ("1e3", DOUBLE, True),
        ("NaN", DOUBLE, True),
        ("inf", DOUBLE, False),
        ("true", BOOLEAN, True),
        ("True", BOOLEAN, False),
        ("2024-02-30", DATE, False),
        ("2024-2-3", DATE, False),
        ("2024-02-03", TIMESTAMP, False),
        ("2024-02-03 04:05:06", TIMESTAMP, True),
        ("2024-02-03T04:05:06.000001Z", TIMESTAMP, True),
        ("2024-02-03T04:05:06Z", TIMESTAMP_NTZ, False),
        ("any text\n", STRING, True),
        ("any", BINARY, True),
    ],
)
def test_x_83_spellings_of_the_log(text: str, data_type: DataType, expected: bool) -> None:
    assert is_log_spelling(text, data_type) is expected
