"""Versions, feature lists and what they allow (X-50 to X-56)."""

from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import (
    FEATURES,
    FEATURES_BY_NAME,
    Capability,
    Level,
)
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.protocol_changes import (
    DEFAULT_PROTOCOL,
    protocol_for_new_table,
    required_protocol,
    stored_configuration,
    with_features,
)
from puredelta.protocol.features.protocol_versions import (
    active_features,
    require_capability,
    require_consistent,
    supported_features,
    supports,
)
from puredelta.protocol.schema.types import (
    LONG,
    TIMESTAMP_NTZ,
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

PLAIN = StructType((StructField("id", LONG),))
BASE = ("appendOnly", "invariants")
WRITING = [c for c in Capability if c is not Capability.READ]


def listing(*names: str) -> Protocol:
    readers = frozenset(n for n in names if n in FEATURES_BY_NAME and FEATURES_BY_NAME[n].reader)
    return Protocol(
        min_reader_version=3 if readers else 1,
        min_writer_version=7,
        reader_features=readers or None,
        writer_features=frozenset(names),
    )


def column(name: str, data_type: object = LONG, **metadata: object) -> StructType:
    return StructType((*PLAIN.fields, StructField(name, data_type, True, metadata)))


def check(
    capability: Capability,
    protocol: Protocol,
    schema: StructType = PLAIN,
    configuration: dict[str, str] | None = None,
) -> None:
    require_capability(capability, protocol, TableProperties.of(configuration or {}), schema)


# --- the registry ---------------------------------------------------------------------------


def test_every_feature_of_the_reference_has_a_row() -> None:
    """X-52; printed by delta-spark 4.4.0, with kind and versions, plus the gated redirects."""
    reference = {
        # name: (reader feature, reader version, writer version)
        "adaptiveMetadata-preview": (True, 3, 7),
        "allowColumnDefaults": (False, 0, 7),
        "appendOnly": (False, 0, 2),
        "catalogManaged": (True, 3, 7),
        "changeDataFeed": (False, 0, 4),
        "checkConstraints": (False, 0, 3),
        "checkpointProtection": (False, 0, 7),
        "clustering": (False, 0, 7),
        "columnMapping": (True, 2, 5),
        "coordinatedCommits-preview": (False, 0, 7),
        "deletionVectors": (True, 3, 7),
        "domainMetadata": (False, 0, 7),
        "generatedColumns": (False, 0, 4),
        "geospatial": (True, 3, 7),
        "geospatial-dev": (True, 3, 7),
        "icebergCompatV1": (False, 0, 7),
        "icebergCompatV2": (False, 0, 7),
        "icebergCompatV3": (False, 0, 7),
        "identityColumns": (False, 0, 6),
        "inCommitTimestamp": (False, 0, 7),
        "invariants": (False, 0, 2),
        "materializePartitionColumns": (False, 0, 7),
        "rowTracking": (False, 0, 7),
        "timestampNtz": (True, 3, 7),
        "typeWidening": (True, 3, 7),
        "typeWidening-preview": (True, 3, 7),
        "v2Checkpoint": (True, 3, 7),
        "vacuumProtocolCheck": (True, 3, 7),
        "variantShredding": (True, 3, 7),
        "variantShredding-preview": (True, 3, 7),
        "variantType": (True, 3, 7),
        "variantType-preview": (True, 3, 7),
        "redirectReaderWriter-preview": (True, 3, 7),
        "redirectWriterOnly-preview": (False, 0, 7),
    }
    assert set(FEATURES_BY_NAME) == set(reference)
    assert len(FEATURES) == len(FEATURES_BY_NAME)
    for name, (reader, reader_version, writer_version) in reference.items():
        row = FEATURES_BY_NAME[name]
        assert row.reader is reader, name
        legacy = (max(reader_version, 1), writer_version) if writer_version < 7 else None
        assert row.legacy == legacy, name


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_a_cell_that_refuses_says_why(feature: object) -> None:
    for capability in Capability:
        support = feature.support(capability)
        assert support.level is Level.SUPPORTED or support.reason, capability
    assert all(name in FEATURES_BY_NAME for name in feature.requires)


# --- versions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "writer", "names"),
    [
        (1, 1, ""),
        (1, 2, "appendOnly invariants"),
        (1, 3, "appendOnly invariants checkConstraints"),
        (1, 4, "appendOnly invariants checkConstraints changeDataFeed generatedColumns"),
        (1, 5, "appendOnly invariants checkConstraints changeDataFeed generatedColumns"),
        (
            2,
            5,
            "appendOnly invariants checkConstraints changeDataFeed generatedColumns columnMapping",
        ),
        (
            2,
            6,
            (
                "appendOnly invariants checkConstraints changeDataFeed generatedColumns "
                "columnMapping identityColumns"
            ),
        ),
    ],
)
def test_legacy_versions_imply_features(reader: int, writer: int, names: str) -> None:
    """X-50."""
    protocol = Protocol(min_reader_version=reader, min_writer_version=writer)
    assert supported_features(protocol) == frozenset(names.split())


def test_lists_are_taken_as_they_stand() -> None:
    protocol = listing("deletionVectors", "appendOnly")
    assert supported_features(protocol) == {"deletionVectors", "appendOnly"}
    assert supports(protocol, "deletionVectors")
    assert not supports(protocol, "invariants")


@pytest.mark.parametrize(
    ("protocol", "code", "problem"),
    [
        (
            Protocol(min_reader_version=3, min_writer_version=6, reader_features=frozenset()),
            ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE,
            "needs writer version 7",
        ),
        (
            Protocol(min_reader_version=3, min_writer_version=7, writer_features=frozenset()),
            ErrorCode.LOG_CORRUPTED,
            "demands the list readerFeatures",
        ),
        (
            Protocol(min_reader_version=1, min_writer_version=7),
            ErrorCode.LOG_CORRUPTED,
            "demands the list writerFeatures",
        ),
        (
            Protocol(min_reader_version=2, min_writer_version=5, reader_features=frozenset({"x"})),
            ErrorCode.LOG_CORRUPTED,
            "allows no list readerFeatures",
        ),
        (
            Protocol(min_reader_version=0, min_writer_version=2),
            ErrorCode.LOG_CORRUPTED,
            "does not exist",
        ),
    ],
)
def test_a_protocol_that_contradicts_itself_is_corrupt(
    protocol: Protocol, code: ErrorCode, problem: str
) -> None:
    with pytest.raises(CorruptTableError, match=problem) as caught:
        require_consistent(protocol)
    assert caught.value.code is code


def test_versions_above_ours_are_refused_by_number() -> None:
    """X-51; a reader does not mind the writer version."""
    newer = Protocol(min_reader_version=1, min_writer_version=8)
    check(Capability.READ, newer)
    for capability, protocol in (
        (Capability.APPEND, newer),
        (Capability.READ, Protocol(min_reader_version=4, min_writer_version=8)),
    ):
        with pytest.raises(UnsupportedError, match="up to") as caught:
            check(capability, protocol)
        assert caught.value.code is ErrorCode.INVALID_PROTOCOL_VERSION


# --- reading --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",  # listed, but no column uses it
        "geospatial",
    ],
)
def test_readable_features(name: str) -> None:
    check(Capability.READ, listing(name))


@pytest.mark.parametrize("feature", [f for f in FEATURES if not f.reader], ids=lambda f: f.name)
def test_a_reader_ignores_writer_features(feature: object) -> None:
    check(Capability.READ, listing(feature.name))


def test_a_reader_ignores_unknown_writer_features() -> None:
    check(Capability.READ, listing("futureWriterFeature"))


@pytest.mark.parametrize(
    "name", ["catalogManaged", "redirectReaderWriter-preview", "adaptiveMetadata-preview"]
)
def test_features_refused_on_read(name: str) -> None:
    with pytest.raises(UnsupportedError, match=name) as caught:
        check(Capability.READ, listing(name))
    assert caught.value.code is ErrorCode.UNSUPPORTED_FEATURES_FOR_READ


def test_unknown_reader_features_are_refused_by_name() -> None:
    """X-51."""
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"b-new", "a-new", "deletionVectors"}),
        writer_features=frozenset({"b-new", "a-new", "deletionVectors"}),
    )
    with pytest.raises(UnsupportedError, match=r"a-new .unknown.*; b-new") as caught:
        check(Capability.READ, protocol)
    assert caught.value.details["features"] == ("a-new", "b-new")


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("variantType", column("v", PrimitiveType("variant"))),
        ("variantShredding", column("v", MapType(LONG, ArrayType(PrimitiveType("variant"))))),
        ("geospatial", column("v", PrimitiveType("geometry(OGC:CRS84)"))),
    ],
)
def test_a_column_of_a_type_we_do_not_read_is_named(name: str, schema: StructType) -> None:
    with pytest.raises(UnsupportedError, match=f"{name} .used by column v"):
        check(Capability.READ, listing(name), schema)


# --- writing --------------------------------------------------------------------------------


@pytest.mark.parametrize("capability", WRITING)
@pytest.mark.parametrize(
    ("names", "configuration"),
    [
        (("appendOnly", "invariants", "checkConstraints"), {"delta.constraints.c": "id > 0"}),
        (("deletionVectors",), {"delta.enableDeletionVectors": "true"}),
        (("domainMetadata", "clustering"), {}),
        (("v2Checkpoint",), {"delta.checkpointPolicy": "v2"}),
        (("inCommitTimestamp",), {"delta.enableInCommitTimestamps": "true"}),
        (("vacuumProtocolCheck", "checkpointProtection", "timestampNtz"), {}),
        (("typeWidening",), {"delta.enableTypeWidening": "true"}),
        (("changeDataFeed", "generatedColumns", "identityColumns", "allowColumnDefaults"), {}),
        (("icebergCompatV1", "icebergCompatV2"), {}),
    ],
)
def test_writable_features(
    capability: Capability, names: tuple[str, ...], configuration: dict[str, str]
) -> None:
    """X-53: a listed feature obliges only while it is active."""
    check(capability, listing(*names), PLAIN, configuration)


@pytest.mark.parametrize("capability", WRITING)
@pytest.mark.parametrize(
    "name",
    [
        "catalogManaged",
        "coordinatedCommits-preview",
        "materializePartitionColumns",
        "futureWriterFeature",
    ],
)
def test_features_refused_on_write_even_when_inactive(capability: Capability, name: str) -> None:
    """X-14, X-16, X-56."""
    with pytest.raises(UnsupportedError, match=name) as caught:
        check(capability, listing(name))
    assert caught.value.code is ErrorCode.UNSUPPORTED_FEATURES_FOR_WRITE


@pytest.mark.parametrize(
    ("name", "schema", "configuration", "used_by"),
    [
        (
            "icebergCompatV2",
            PLAIN,
            {"delta.enableIcebergCompatV2": "true"},
            "property delta.enableIcebergCompatV2=true",
        ),
    ],
)
def test_a_merge_names_what_makes_a_feature_active(
    name: str, schema: StructType, configuration: dict[str, str], used_by: str
) -> None:
    with pytest.raises(UnsupportedError, match=f"merge into .* {name} .used by {used_by}"):
        check(Capability.MERGE, listing(name), schema, configuration)


def test_m_100_to_103_columns_that_fill_themselves_may_be_written() -> None:
    for name, schema in (
        ("generatedColumns", column("g", **{"delta.generationExpression": "id + 1"})),
        ("identityColumns", column("i", **{"delta.identity.start": 1, "delta.identity.step": 1})),
        ("allowColumnDefaults", column("d", CURRENT_DEFAULT="5")),
    ):
        for capability in (Capability.APPEND, Capability.OVERWRITE, Capability.MERGE):
            check(capability, listing(name), schema)
        with pytest.raises(UnsupportedError, match="convert a directory into"):
            check(Capability.CONVERT, listing(name), schema)


def test_legacy_versions_imply_features_that_are_active() -> None:
    protocol = Protocol(min_reader_version=1, min_writer_version=4)
    for capability in WRITING:
        check(capability, protocol, PLAIN, {"delta.enableChangeDataFeed": "true"})


@pytest.mark.parametrize("capability", [Capability.APPEND, Capability.OVERWRITE])
def test_whole_files_need_no_change_rows(capability: Capability) -> None:
    """Readers infer changes from the file actions of a commit without change files (M-123)."""
    enabled = {"delta.enableChangeDataFeed": "true"}
    check(capability, listing("changeDataFeed"), PLAIN, enabled)


@pytest.mark.parametrize("capability", [Capability.APPEND, Capability.MERGE])
def test_rows_keep_their_ids_whoever_writes(capability: Capability) -> None:
    """X-14, M-110."""
    check(capability, listing("rowTracking"), PLAIN, {"delta.enableRowTracking": "true"})


def test_active_features_say_what_uses_them() -> None:
    schema = column("n", StructType((StructField("x", TIMESTAMP_NTZ),)))
    properties = TableProperties.of({"delta.appendOnly": "true"})
    assert active_features(listing("appendOnly", "timestampNtz"), properties, schema) == {
        "appendOnly": ("property delta.appendOnly=true",),
        "timestampNtz": ("column n.x",),
    }


# --- protocols of new and changed tables ----------------------------------------------------


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


def test_a_changed_schema_raises_the_protocol_only_as_far_as_the_reference_does() -> None:
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
