"""The table after a MERGE, from names and types alone (M-47 to M-57)."""

from __future__ import annotations

import dataclasses
import json

import pytest

from puredelta.commands.dml.resolve.evolve import Evolution, canonical_path, evolved_config
from puredelta.commands.dml.settings import MergeSettings
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.features.type_widening import AutomaticWidening
from puredelta.protocol.schema.schema_json import encode_schema, simple_string
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

SETTINGS = MergeSettings()
STAR = Evolution(assigned=(), has_star=True, case_sensitive=False)
WIDENING = {"delta.enableTypeWidening": "true"}


def struct(**types: DataType) -> StructType:
    return StructType(tuple(StructField(name, t) for name, t in types.items()))


def table(
    schema: StructType,
    configuration: dict[str, str] | None = None,
    *features: str,
    partition_columns: tuple[str, ...] = (),
) -> TableConfig:
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset(features) - {"checkConstraints", "appendOnly"},
        writer_features=frozenset(features),
    )
    return TableConfig.of(
        protocol if features else Protocol(min_reader_version=1, min_writer_version=2),
        Metadata(
            id="0",
            schema_string=encode_schema(schema),
            partition_columns=partition_columns,
            configuration=configuration or {},
        ),
    )


def evolved(
    schema: StructType, source: StructType, *assigned: str, case_sensitive: bool = False
) -> str:
    """Evolve a plain table; paths are dotted, without one there is a star."""
    evolution = Evolution(
        assigned=[tuple(a.split(".")) for a in assigned],
        has_star=not assigned,
        case_sensitive=case_sensitive,
    )
    return simple_string(evolved_config(table(schema), source, evolution, SETTINGS).schema)


SOURCE = struct(key=LONG, s=struct(a=LONG, b=LONG, t=struct(x=LONG, y=LONG)), new=STRING)


@pytest.mark.parametrize(
    ("assigned", "columns"),
    [
        (
            [],
            "struct<key:bigint,s:struct<a:bigint,b:bigint,t:struct<x:bigint,y:bigint>>,new:string>",
        ),
        (["key"], "struct<key:bigint,s:struct<a:bigint>>"),
        (["new"], "struct<key:bigint,s:struct<a:bigint>,new:string>"),
        (["NEW"], "struct<key:bigint,s:struct<a:bigint>,new:string>"),
        (["s"], "struct<key:bigint,s:struct<a:bigint,b:bigint,t:struct<x:bigint,y:bigint>>>"),
        (["s.b"], "struct<key:bigint,s:struct<a:bigint,b:bigint>>"),
        (["s.t.y"], "struct<key:bigint,s:struct<a:bigint,t:struct<y:bigint>>>"),
        (["gone"], "struct<key:bigint,s:struct<a:bigint>>"),
    ],
)
def test_which_source_columns_evolve_the_table(assigned: list[str], columns: str) -> None:
    """M-48."""
    assert evolved(struct(key=LONG, s=struct(a=LONG)), SOURCE, *assigned) == columns


def test_nothing_named_and_no_star_changes_nothing() -> None:
    config = table(struct(key=LONG))
    none = Evolution(assigned=(), has_star=False, case_sensitive=False)
    assert evolved_config(config, SOURCE, none, SETTINGS) is config
    assert evolved_config(config, struct(KEY=INTEGER), STAR, SETTINGS) is config


def test_sensitive_sessions_tell_names_apart() -> None:
    """M-48: what is assigned is matched as the session says."""
    target = struct(key=LONG)
    assert evolved(target, SOURCE, "NEW", case_sensitive=True) == "struct<key:bigint>"


def test_new_fields_come_last_and_are_nullable() -> None:
    """M-49."""
    target = StructType((StructField("Key", LONG, False), StructField("s", struct(a=LONG))))
    source = StructType(
        (
            StructField("first", LONG, False),
            StructField("s", StructType((StructField("z", LONG, False), StructField("A", LONG)))),
            StructField("KEY", LONG),
        )
    )
    after = evolved_config(table(target), source, STAR, SETTINGS).schema
    assert after == StructType(
        (
            StructField("Key", LONG, False),
            StructField("s", struct(a=LONG, z=LONG)),
            StructField("first", LONG),
        )
    )


def test_arrays_and_maps_evolve_inside() -> None:
    """M-50."""
    target = struct(l=ArrayType(struct(a=LONG)), m=MapType(struct(a=LONG), struct(c=LONG)))
    source = struct(
        l=ArrayType(struct(b=LONG)), m=MapType(struct(a=LONG, b=LONG), struct(c=LONG, d=LONG))
    )
    assert evolved(target, source) == (
        "struct<l:array<struct<a:bigint,b:bigint>>,"
        "m:map<struct<a:bigint,b:bigint>,struct<c:bigint,d:bigint>>>"
    )


@pytest.mark.parametrize(("current", "update"), [(BOOLEAN, STRING), (INTEGER, BINARY)])
def test_types_that_do_not_go_together(current: DataType, update: DataType) -> None:
    """M-54."""
    with pytest.raises(InvalidRequestError) as caught:
        evolved(struct(a=current), struct(a=update))
    assert caught.value.code is ErrorCode.FAILED_TO_MERGE_FIELDS


@pytest.mark.parametrize(
    ("mode", "schema"),
    [
        (AutomaticWidening.ALWAYS, "struct<i:bigint,d:double,p:timestamp_ntz,s:struct<b:int>>"),
        (AutomaticWidening.SAME_FAMILY, "struct<i:bigint,d:int,p:timestamp_ntz,s:struct<b:int>>"),
        (AutomaticWidening.NEVER, "struct<i:int,d:int,p:date,s:struct<b:tinyint>>"),
    ],
)
def test_widening(mode: AutomaticWidening, schema: str) -> None:
    """M-53."""
    target = struct(i=INTEGER, d=INTEGER, p=DATE, s=struct(b=BYTE))
    source = struct(i=LONG, d=DOUBLE, p=TIMESTAMP_NTZ, s=struct(b=INTEGER))
    settings = MergeSettings(automatic_widening=mode)
    config = table(target, WIDENING, "typeWidening", "timestampNtz")
    after = evolved_config(config, source, STAR, settings)
    assert simple_string(after.schema) == schema
    changed = mode is not AutomaticWidening.NEVER
    assert ("delta.typeChanges" in after.metadata.schema_string) is changed


def test_widening_needs_the_property_and_the_feature() -> None:
    """M-53."""
    for config in (
        table(struct(a=SHORT), {}, "typeWidening"),
        table(struct(a=SHORT), WIDENING),
    ):
        assert evolved_config(config, struct(a=LONG), STAR, SETTINGS) is config


def test_mapped_tables_give_new_fields_ids_and_names() -> None:
    """M-57, M-109."""
    mapped = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "col-7"}
    config = table(
        StructType((StructField("a", LONG, metadata=mapped),)),
        {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"},
        "columnMapping",
    )
    after = evolved_config(config, struct(b=struct(c=LONG)), STAR, SETTINGS)
    assert after.metadata.configuration["delta.columnMapping.maxColumnId"] == "11"
    a, b = json.loads(after.metadata.schema_string)["fields"]
    assert a["metadata"] == mapped
    assert b["metadata"]["delta.columnMapping.id"] == 10
    assert b["type"]["fields"][0]["metadata"]["delta.columnMapping.id"] == 11
    assert b["metadata"]["delta.columnMapping.physicalName"].startswith("col-")


def test_partition_columns_stay() -> None:
    """M-57."""
    config = table(struct(a=LONG, p=STRING), partition_columns=("p",))
    after = evolved_config(config, struct(b=LONG), STAR, SETTINGS)
    assert after.partition_columns == ("p",)
    assert after.schema.names == ("a", "p", "b")


def test_new_void_columns() -> None:
    """M-56: files leave them out of structs, too, but an array of them nothing could hold."""
    config = table(struct(a=LONG, v=VOID))
    source = struct(a=LONG, v=VOID, w=VOID)
    assert evolved_config(config, source, STAR, SETTINGS).schema == source
    nested = struct(a=LONG, v=VOID, s=struct(w=VOID, x=LONG))
    assert evolved_config(config, nested, STAR, SETTINGS).schema == nested
    refusing = MergeSettings(refuses_void=True)
    assert evolved_config(config, struct(v=VOID), STAR, refusing) is config
    for columns, settings, code in (
        (struct(w=VOID), refusing, ErrorCode.MERGE_ADD_VOID_COLUMN),
        (struct(s=struct(w=VOID, x=LONG)), refusing, ErrorCode.MERGE_ADD_VOID_COLUMN),
        (struct(s=struct(w=VOID)), SETTINGS, ErrorCode.STRUCT_ALL_VOID_FIELDS),
        (struct(l=ArrayType(VOID)), SETTINGS, ErrorCode.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE),
        (
            struct(l=ArrayType(struct(v=VOID, x=LONG))),
            SETTINGS,
            ErrorCode.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE,
        ),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            evolved_config(config, columns, STAR, settings)
        assert caught.value.code is code


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("a > 0", True),
        ("abs(`A`) < 5 and b = 1", True),
        ("s.x > 0", False),
        ("b <> 'a'", False),
        ("s.a > 0", False),
        ("aa > 0", False),
    ],
)
def test_constraints_hold_types_fast(expression: str, refused: bool) -> None:
    """M-55."""
    target = struct(a=INTEGER, aa=LONG, b=LONG, s=struct(x=LONG, a=LONG))
    config = table(
        target,
        {**WIDENING, "delta.constraints.c": expression},
        "typeWidening",
        "checkConstraints",
    )
    if not refused:
        assert evolved_config(config, struct(a=LONG), STAR, SETTINGS) is not config
        return
    with pytest.raises(InvalidRequestError, match=r"delta\.constraints\.c -> ") as caught:
        evolved_config(config, struct(a=LONG), STAR, SETTINGS)
    assert caught.value.code is ErrorCode.CONSTRAINT_DATA_TYPE_MISMATCH


def test_a_struct_that_constraints_read_may_get_fields() -> None:
    """M-55: what was there keeps its type."""
    config = table(struct(s=struct(x=LONG)), {"delta.constraints.c": "s.x > 0"}, "checkConstraints")
    after = evolved_config(config, struct(s=struct(y=LONG)), STAR, SETTINGS)
    assert after.schema == struct(s=struct(x=LONG, y=LONG))


def test_generated_columns_hold_types_fast() -> None:
    """M-55."""
    generated = {"delta.generationExpression": "a + 1"}
    schema = StructType((StructField("a", INTEGER), StructField("g", LONG, metadata=generated)))
    config = table(schema, WIDENING, "typeWidening", "generatedColumns")
    with pytest.raises(InvalidRequestError, match=r"g -> a \+ 1") as caught:
        evolved_config(config, struct(a=LONG), STAR, SETTINGS)
    assert caught.value.code is ErrorCode.GENERATED_COLUMNS_DATA_TYPE_MISMATCH


def test_settings_of_the_session() -> None:
    parsed = MergeSettings.parse(
        {
            "spark.databricks.delta.typeWidening.allowAutomaticWidening": "SAME_FAMILY_TYPE",
            "spark.databricks.delta.createDataFrame.dropNullColumns": "true",
        }
    )
    assert parsed == dataclasses.replace(
        SETTINGS, automatic_widening=AutomaticWidening.SAME_FAMILY, refuses_void=True
    )
    with pytest.raises(InvalidRequestError, match=r"always, same_family_type, never"):
        MergeSettings.parse(
            {"spark.databricks.delta.typeWidening.allowAutomaticWidening": "sometimes"}
        )


def test_paths_are_spelled_as_the_table_spells_them() -> None:
    schema = struct(Key=LONG, S=struct(A=LONG))
    assert canonical_path(schema, ("key",)) == ("Key",)
    assert canonical_path(schema, ("s", "a")) == ("S", "A")
    assert canonical_path(schema, ("s", "b", "c")) == ("S", "b", "c")
