"""Table properties as a user sets them."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.property_checks import (
    canonical_key,
    checked_properties,
    require_sound_properties,
)
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    COLLATIONS,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

TABLE = StructType((StructField("id", LONG),))
NESTED = StructType((StructField("b", BINARY), StructField("n", LONG)))
_TYPE = ErrorCode.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE
_TWICE = ErrorCode.DUPLICATE_DATA_SKIPPING_COLUMNS


def test_keys_of_delta_ignore_case_and_others_do_not() -> None:
    given = {"DELTA.appendonly": "TRUE", "Mine": "1", "delta.feature.DeletionVectors": "supported"}
    assert checked_properties(given, allow_arbitrary=False) == {
        "delta.appendOnly": "TRUE",
        "Mine": "1",
        "delta.feature.deletionvectors": "supported",
    }
    assert canonical_key("delta.targetFileSize") == "delta.targetFileSize"


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("delta.targetFileSize", "1", ErrorCode.UNKNOWN_CONFIGURATION),
        ("delta.columnMapping.maxColumnId", "7", ErrorCode.CANNOT_MODIFY_TABLE_PROPERTY),
        ("clusteringColumns", "id", ErrorCode.CANNOT_MODIFY_TABLE_PROPERTY),
        ("delta.appendOnly", "maybe", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.appendOnly", " true", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.checkpointInterval", "0", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.checkpointInterval", "1_0", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.checkpointInterval", "10 ", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.dataSkippingNumIndexedCols", "99999999999", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.isolationLevel", "WriteSerializable", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.logRetentionDuration", "interval 1 month", ErrorCode.INVALID_TABLE_PROPERTY),
        ("delta.feature.bogus", "supported", ErrorCode.UNSUPPORTED_FEATURES_IN_CONFIG),
        ("delta.feature.rowTracking", "disabled", ErrorCode.UNSUPPORTED_FEATURE_STATUS),
    ],
)
def test_bad_properties_are_named(key: str, value: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as error:
        checked_properties({key: value}, allow_arbitrary=False)
    assert error.value.code is code


def test_what_is_not_implemented_cannot_be_switched_on() -> None:
    with pytest.raises(UnsupportedError, match="metadata of Hudi"):
        checked_properties({"delta.universalFormat.enabledFormats": "hudi"}, allow_arbitrary=False)


def test_arbitrary_keys_pass_where_the_session_says_so() -> None:
    assert checked_properties({"delta.mine": "1"}, allow_arbitrary=True) == {"delta.mine": "1"}


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"delta.logRetentionDuration": "3 days"}, ErrorCode.INVALID_TABLE_PROPERTY),
        (
            {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"},
            ErrorCode.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
        ),
        ({"delta.dataSkippingStatsColumns": "zz"}, ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA),
    ],
)
def test_properties_must_agree(properties: dict[str, str], code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as error:
        require_sound_properties(TableProperties.of(properties), TABLE)
    assert error.value.code is code


def test_a_collation_has_no_statistics() -> None:
    collated = StructField("c", STRING, metadata={COLLATIONS: {"c": "ICU.UNICODE_CI"}})
    properties = TableProperties.of({"delta.dataSkippingStatsColumns": "c"})
    with pytest.raises(InvalidRequestError) as error:
        require_sound_properties(properties, StructType((collated,)))
    assert error.value.code is _TYPE


@pytest.mark.parametrize(
    ("data_type", "named", "code"),
    [
        *((kind, "c", _TYPE) for kind in (BINARY, BOOLEAN, VOID)),
        (ArrayType(LONG, contains_null=True), "c", _TYPE),
        (MapType(LONG, LONG, value_contains_null=True), "c", _TYPE),
        *((kind, "c", None) for kind in (LONG, DOUBLE, STRING, DATE, TIMESTAMP, VARIANT)),
        (DecimalType(38, 2), "c", None),
        (NESTED, "c", None),
        (NESTED, "c.b", None),
        (NESTED, "C.N,id", None),
        (NESTED, "c.zz", ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA),
        (NESTED, "c,c.n", _TWICE),
        (LONG, "id,id", _TWICE),
        (LONG, "P", ErrorCode.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN),
    ],
)
def test_statistics_are_asked_of_columns_that_have_them(
    data_type: DataType, named: str, code: ErrorCode | None
) -> None:
    schema = StructType((*TABLE.fields, StructField("c", data_type), StructField("p", LONG)))
    properties = TableProperties.of({"delta.dataSkippingStatsColumns": named})
    if code is None:
        require_sound_properties(properties, schema, ["p"])
        return
    with pytest.raises(InvalidRequestError) as error:
        require_sound_properties(properties, schema, ["p"])
    assert error.value.code is code
