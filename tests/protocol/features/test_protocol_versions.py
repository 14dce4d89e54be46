"""Versions, feature lists and what they allow (X-50 to X-56)."""

from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, ErrorCode, UnsupportedError
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import (
    FEATURES,
    FEATURES_BY_NAME,
    Capability,
    Level,
)
from puredelta.protocol.features.properties import TableProperties
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
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.protocol.features.protocols import PLAIN, column, listing

WRITING = [c for c in Capability if c is not Capability.READ]


def check(
    capability: Capability,
    protocol: Protocol,
    schema: StructType = PLAIN,
    configuration: dict[str, str] | None = None,
) -> None:
    require_capability(capability, protocol, TableProperties.of(configuration or {}), schema)


# --- the registry ---------------------------------------------------------------------------


def test_every_feature_of_delta_spark_has_a_row() -> None:
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
    of_other_writers = {"collations", "collations-preview"}
    assert set(FEATURES_BY_NAME) == set(reference) | of_other_writers
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
        "variantType",
        "geospatial",  # listed, but no column uses it
    ],
)
def test_readable_features(name: str) -> None:
    check(Capability.READ, listing(name))


@pytest.mark.parametrize("feature", [f for f in FEATURES if not f.reader], ids=lambda f: f.name)
def test_a_reader_ignores_writer_features(feature: object) -> None:
    check(Capability.READ, listing(feature.name))


def test_a_reader_ignores_unknown_writer_features() -> None:
    check(Capability.READ, listing("futureWriterFeature"))


@pytest.mark.parametrize("name", ["redirectReaderWriter-preview", "adaptiveMetadata-preview"])
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


@pytest.mark.parametrize("capability", list(Capability))
@pytest.mark.parametrize(
    "type_",
    [
        PrimitiveType("geometry(OGC:CRS84)"),
        MapType(LONG, ArrayType(PrimitiveType("geography(OGC:CRS84, spherical)"))),
    ],
)
def test_columns_of_geometries_are_read_and_written(
    capability: Capability, type_: DataType
) -> None:
    check(capability, listing("geospatial"), column("v", type_))


@pytest.mark.parametrize("capability", list(Capability))
def test_columns_of_variants_are_read_and_written(capability: Capability) -> None:
    names = ("variantType", "variantShredding")
    configuration = {"delta.enableVariantShredding": "true"}
    check(capability, listing(*names), column("v", PrimitiveType("variant")), configuration)


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
        "coordinatedCommits-preview",
        "redirectWriterOnly-preview",
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
            "icebergCompatV3",
            PLAIN,
            {"delta.enableIcebergCompatV3": "true"},
            "property delta.enableIcebergCompatV3=true",
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
        if name == "allowColumnDefaults":  # a table of the catalog brings its defaults
            check(Capability.CONVERT, listing(name), schema)
            continue
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
