"""The protocols of new, changed and upgraded tables."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.protocol_changes import (
    DEFAULT_PROTOCOL,
    dependents,
    protocol_for_new_table,
    required_protocol,
    stored_configuration,
    upgraded,
    with_features,
    without_feature,
)
from puredelta.protocol.features.protocol_versions import require_consistent, supported_features
from puredelta.protocol.schema.types import TIMESTAMP_NTZ, PrimitiveType, StructType
from tests.protocol.features.protocols import BASE, PLAIN, column, listing


def legacy(reader: int, writer: int) -> Protocol:
    return Protocol(min_reader_version=reader, min_writer_version=writer)


LISTING = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=frozenset({"deletionVectors", "appendOnly", "invariants"}),
)


def test_versions_stand_for_the_features_they_imply() -> None:
    assert upgraded(legacy(1, 2), reader=1, writer=3) == legacy(1, 3)
    both = upgraded(LISTING, reader=1, writer=3)
    assert supported_features(both) == supported_features(LISTING) | {"checkConstraints"}
    assert upgraded(LISTING, reader=1, writer=1) == LISTING
    assert upgraded(legacy(1, 3), reader=1, writer=2) == legacy(1, 3)
    assert upgraded(legacy(1, 2), reader=1, writer=7) == legacy(1, 2)


@pytest.mark.parametrize(
    ("before", "reader", "writer", "code"),
    [
        (legacy(1, 2), 3, 5, ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE),
        (legacy(1, 2), 4, 9, ErrorCode.INVALID_TABLE_PROPERTY),
    ],
)
def test_versions_that_are_none_are_refused(
    before: Protocol, reader: int, writer: int, code: ErrorCode
) -> None:
    with pytest.raises(InvalidRequestError) as error:
        upgraded(before, reader=reader, writer=writer)
    assert error.value.code is code


def test_a_protocol_without_a_feature_is_as_weak_as_it_can_be() -> None:
    assert without_feature(LISTING, "deletionVectors") == legacy(1, 2)
    assert without_feature(legacy(1, 3), "checkConstraints") == legacy(1, 2)
    rest = without_feature(legacy(1, 4), "checkConstraints")
    assert (rest.min_reader_version, rest.min_writer_version) == (1, 7)
    assert "changeDataFeed" in supported_features(rest)


def test_features_that_need_another_are_known() -> None:
    listing = Protocol(
        min_reader_version=1,
        min_writer_version=7,
        writer_features=frozenset({"rowTracking", "domainMetadata"}),
    )
    assert dependents(listing, "domainMetadata") == ("rowTracking",)


@pytest.mark.parametrize(
    ("schema", "configuration", "expected"),
    [
        (PLAIN, {}, (1, 2, None)),
        (PLAIN, {"delta.appendOnly": "true"}, (1, 2, None)),
        (PLAIN, {"delta.constraints.c": "id > 0"}, (1, 3, None)),
        (PLAIN, {"delta.enableChangeDataFeed": "true"}, (1, 7, {"changeDataFeed", *BASE})),
        (PLAIN, {"delta.columnMapping.mode": "name"}, (2, 7, {"columnMapping", *BASE})),
        (
            column("g", **{"delta.generationExpression": "id"}),
            {},
            (1, 7, {"generatedColumns", *BASE}),
        ),
        (column("i", **{"delta.identity.start": 1}), {}, (1, 7, {"identityColumns", *BASE})),
        (PLAIN, {"delta.minWriterVersion": "5"}, (1, 4, None)),
        (
            column("t", TIMESTAMP_NTZ),
            {},
            (3, 7, {"timestampNtz", "appendOnly", "invariants"}),
        ),
        (
            column("d", CURRENT_DEFAULT="5"),
            {"delta.columnMapping.mode": "name"},
            (2, 7, {"allowColumnDefaults", "columnMapping", "appendOnly", "invariants"}),
        ),
        (
            PLAIN,
            {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
            (
                3,
                7,
                {"deletionVectors", "rowTracking", "domainMetadata", "appendOnly", "invariants"},
            ),
        ),
        (
            PLAIN,
            {"delta.feature.deletionvectors": "supported"},
            (3, 7, {"deletionVectors", "appendOnly", "invariants"}),
        ),
        (PLAIN, {"delta.feature.checkConstraints": "supported"}, (1, 3, None)),
        (
            PLAIN,
            {
                "delta.feature.deletionVectors": "supported",
                "delta.minReaderVersion": "3",
                "delta.minWriterVersion": "7",
            },
            (3, 7, {"deletionVectors"}),
        ),
        (column("v", PrimitiveType("variant")), {}, (3, 7, {"variantType", *BASE})),
        (
            PLAIN,
            {"delta.feature.clustering": "supported"},
            (1, 7, {"domainMetadata", "clustering", *BASE}),
        ),
    ],
)
def test_a_new_table_gets_the_lowest_protocol_that_does(
    schema: StructType,
    configuration: dict[str, str],
    expected: tuple[int, int, set[str] | None],
) -> None:
    """C-54, X-55; every row was compared with what delta-spark 4.4.0 wrote."""
    protocol = protocol_for_new_table(schema, configuration)
    reader, writer, names = expected
    assert (protocol.min_reader_version, protocol.min_writer_version) == (reader, writer)
    assert protocol.writer_features == (None if names is None else frozenset(names))
    if reader == 3:
        assert protocol.reader_features == {n for n in names or () if FEATURES_BY_NAME[n].reader}
    else:
        assert protocol.reader_features is None
    require_consistent(protocol)


@pytest.mark.parametrize(
    "configuration",
    [
        {"delta.feature.flyingCarpets": "supported"},
        {"delta.minReaderVersion": "4"},
        {"delta.minWriterVersion": "many"},
    ],
)
def test_a_protocol_that_does_not_exist_cannot_be_asked_for(configuration: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        protocol_for_new_table(PLAIN, configuration)
    assert caught.value.code is ErrorCode.INVALID_TABLE_PROPERTY


def test_what_shapes_the_protocol_is_not_stored_as_a_property() -> None:
    configuration = {
        "delta.feature.deletionVectors": "supported",
        "delta.minReaderVersion": "3",
        "delta.minWriterVersion": "7",
        "delta.appendOnly": "true",
        "mine": "1",
    }
    assert stored_configuration(configuration) == {"delta.appendOnly": "true", "mine": "1"}


def test_columns_of_variants_bring_their_feature_to_an_old_table() -> None:
    """As in delta-spark, and so does the property that lets other writers shred them."""
    nothing, variant = TableProperties.of({}), column("v", PrimitiveType("variant"))
    assert required_protocol(DEFAULT_PROTOCOL, variant, nothing) == listing("variantType", *BASE)
    shreds = TableProperties.of({"delta.enableVariantShredding": "true"})
    both = listing("variantType", "variantShredding", *BASE)
    assert required_protocol(DEFAULT_PROTOCOL, PLAIN, shreds) == both
    assert required_protocol(listing("variantType", *BASE), variant, nothing) == listing(
        "variantType", *BASE
    )


@pytest.mark.parametrize(
    ("name", "kind", "configuration"),
    [
        ("variantType", "variant", {}),
        ("typeWidening", "integer", {"delta.enableTypeWidening": "true"}),
        ("variantShredding", "integer", {"delta.enableVariantShredding": "true"}),
    ],
)
def test_a_table_with_the_preview_of_a_feature_keeps_it(
    name: str, kind: str, configuration: dict[str, str]
) -> None:
    """Older clients know the preview alone."""
    preview = listing(f"{name}-preview", *BASE)
    properties = TableProperties.of(configuration)
    assert required_protocol(preview, column("v", PrimitiveType(kind)), properties) is preview


def test_a_changed_schema_raises_the_protocol_only_as_far_as_delta_spark_does() -> None:
    nothing = TableProperties.of({})
    assert required_protocol(DEFAULT_PROTOCOL, PLAIN, nothing) is DEFAULT_PROTOCOL
    ntz = column("t", TIMESTAMP_NTZ)
    with pytest.raises(InvalidRequestError, match=r"timestampNtz .column t") as caught:
        required_protocol(DEFAULT_PROTOCOL, ntz, nothing)
    assert caught.value.code is ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT
    listed = listing("timestampNtz")
    assert required_protocol(listed, ntz, nothing) is listed
    feed = TableProperties.of({"delta.enableChangeDataFeed": "true"})
    assert required_protocol(DEFAULT_PROTOCOL, PLAIN, feed) == listing("changeDataFeed", *BASE)
    checks = TableProperties.of({"delta.constraints.c": "id > 0"})
    assert required_protocol(DEFAULT_PROTOCOL, PLAIN, checks) == Protocol(
        min_reader_version=1, min_writer_version=3
    )
    vectors = TableProperties.of({"delta.enableDeletionVectors": "true"})
    assert required_protocol(DEFAULT_PROTOCOL, PLAIN, vectors) == Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"deletionVectors"}),
        writer_features=frozenset({"deletionVectors", "appendOnly", "invariants"}),
    )


def test_a_legacy_table_that_starts_to_list_keeps_all_it_supported() -> None:
    old = Protocol(min_reader_version=2, min_writer_version=5)
    new = with_features(old, ["deletionVectors"])
    assert supported_features(new) == supported_features(old) | {"deletionVectors"}
    assert new.reader_features == {"columnMapping", "deletionVectors"}
    require_consistent(new)


def test_required_features_come_along() -> None:
    assert supported_features(with_features(DEFAULT_PROTOCOL, ["clustering"])) == {
        "appendOnly",
        "invariants",
        "clustering",
        "domainMetadata",
    }
