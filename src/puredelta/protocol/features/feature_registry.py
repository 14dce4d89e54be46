"""Every table feature of delta-spark, one row each, and what this library does with it.

These rows decide what this library may do with a table, and ``docs/protocol-coverage.md`` is
generated from them. Names, kinds, versions and requirements are those of delta-spark 4.4.0 (X-50,
X-52).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from puredelta.protocol.features import feature_usage as usage
from puredelta.protocol.features.feature_usage import Usage
from puredelta.protocol.schema.types import COLLATIONS

READER_VERSION_MAX = 3
"""Also the first version whose features are listed by name."""
WRITER_VERSION_MAX = 7
"""Also the first version whose features are listed by name."""


class Capability(Enum):
    """A use of a table, as a caller asks for it."""

    READ = "read"
    APPEND = "append to"
    OVERWRITE = "overwrite"
    MERGE = "merge into"
    CONVERT = "convert a directory into"
    ADMINISTER = "administer"
    """Commit to the table without writing rows: create, alter, vacuum, restore, clone."""


class Level(Enum):
    """Whether a capability is there for a table that lists a feature."""

    SUPPORTED = "yes"
    WHEN_INACTIVE = "while inactive"
    REFUSED = "no"


class Enablement(Enum):
    """The trigger that adds a feature to a protocol."""

    USE = "using it, in new and existing tables"
    USE_IN_NEW_TABLE = "using it in a new table; in an existing one its name"
    NAME = "its name only"


@dataclass(frozen=True, slots=True)
class Support:
    """One cell of the table; ``reason`` is what an error message and the docs say."""

    level: Level
    reason: str = ""


YES = Support(Level.SUPPORTED)


def yes(how: str) -> Support:
    """Supported, with a remark for the docs."""
    return Support(Level.SUPPORTED, how)


def inactive(reason: str) -> Support:
    """Supported as long as nothing in the table uses the feature."""
    return Support(Level.WHEN_INACTIVE, reason)


def no(reason: str) -> Support:
    """Refused, even if nothing uses the feature (X-56)."""
    return Support(Level.REFUSED, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One table feature.

    ``legacy`` is the pair of reader and writer version that implies the feature without
    listing it, where there is one; ``requires`` are features that come with it.
    """

    name: str
    reader: bool = False
    """Whether readers must understand it, or writers only."""
    legacy: tuple[int, int] | None = None
    requires: tuple[str, ...] = ()
    used: Usage = field(default=usage.never)
    enabled_by: Enablement = Enablement.USE
    enabling: Usage | None = None
    """The uses that add it to a protocol, if not all are."""
    read: Support = YES
    append: Support = YES
    overwrite: Support = YES
    merge: Support = YES
    convert: Support = YES
    administer: Support = YES

    def support(self, capability: Capability) -> Support:
        """Return the cell of one capability: that of its name."""
        cell: Support = getattr(self, capability.name.lower())
        return cell


def _writer(name: str, support: Support, **row: object) -> Feature:
    """Build a row whose writing cells are the same, but for those named in ``row``.

    Only a feature that is refused for writing is also refused for administering a table.
    """
    cells = dict.fromkeys(("append", "overwrite", "merge", "convert"), support)
    if support.level is Level.REFUSED:
        cells["administer"] = support
    return Feature(**{"name": name, **cells, **row})  # type: ignore[arg-type]


_CATALOG = "commits of this table go through a catalog, which a log on storage alone cannot see"
_ICEBERG_V3 = "its rules are a proposal, and no part of the protocol yet"
_MATERIALIZED = "new data files hold the partition columns, written by Arrow"
_OLD_FILES = "the files to convert do not hold the partition columns"
_GEO = "with PySpark 4.2 or newer, which has the types"
_REDIRECT = "the table redirects to another place, which is not implemented"

_HAS_VARIANT = usage.when_types_need("variantType")
_SHREDS = usage.when_set("enable_variant_shredding")
_HAS_GEO = usage.when_types_need("geospatial")

FEATURES: tuple[Feature, ...] = (
    Feature(
        name="appendOnly",
        legacy=(1, 2),
        used=usage.when_set("append_only"),
        overwrite=yes("a commit that removes rows is refused while the property is set"),
        merge=yes("a commit that removes rows is refused while the property is set"),
    ),
    _writer(
        "invariants",
        yes("checked on every row that is computed; copied rows are not checked again"),
        legacy=(1, 2),
        used=usage.when_fields_have(usage.INVARIANTS),
    ),
    _writer(
        "checkConstraints",
        yes("checked on every row that is computed; copied rows are not checked again"),
        legacy=(1, 3),
        used=usage.check_constraints,
    ),
    Feature(
        name="changeDataFeed",
        legacy=(1, 4),
        used=usage.when_set("enable_change_data_feed"),
        append=yes("readers infer inserts from the added files"),
        overwrite=yes("readers infer changes from the added and removed files"),
        merge=yes("change files are written where rows are updated or deleted"),
        convert=yes("readers infer inserts from the added files"),
    ),
    _writer(
        "generatedColumns",
        yes("computed where they are not given, checked where they are"),
        convert=inactive("values in the files to convert are not checked"),
        legacy=(1, 4),
        used=usage.when_fields_have(usage.GENERATION_EXPRESSION),
    ),
    _writer(
        "columnMapping",
        YES,
        reader=True,
        legacy=(2, 5),
        used=usage.column_mapping,
        convert=inactive("the files to convert carry no physical names"),
    ),
    _writer(
        "identityColumns",
        yes("values without gaps within a write; the high water mark is kept in the schema"),
        convert=inactive("values in the files to convert are not checked"),
        legacy=(1, 6),
        used=usage.when_fields_have(usage.IDENTITY_START, usage.IDENTITY_STEP),
    ),
    _writer(
        "allowColumnDefaults",
        yes("fill in what INSERT and rows to be written leave out"),
        convert=yes("those of the catalog; files that lack a column with one are refused"),
        enabled_by=Enablement.USE_IN_NEW_TABLE,
        used=usage.when_fields_have(usage.CURRENT_DEFAULT),
    ),
    Feature(
        name="timestampNtz",
        reader=True,
        enabled_by=Enablement.USE_IN_NEW_TABLE,
        used=usage.when_types_need("timestampNtz"),
    ),
    _writer(
        "deletionVectors",
        yes("existing vectors are honoured; changed files are rewritten without one"),
        reader=True,
        used=usage.when_set("enable_deletion_vectors"),
        read=yes("vectors are applied"),
        merge=yes("changed rows are hidden by vectors while the property is set"),
    ),
    Feature(
        name="typeWidening",
        reader=True,
        used=usage.any_of(
            usage.when_set("enable_type_widening"), usage.when_fields_have(usage.TYPE_CHANGES)
        ),
        append=yes("no column is widened automatically"),
        merge=yes("columns are widened by schema evolution only"),
    ),
    Feature(
        name="typeWidening-preview",
        reader=True,
        enabled_by=Enablement.NAME,
        used=usage.when_fields_have(usage.TYPE_CHANGES),
        append=yes("no column is widened automatically"),
        merge=yes("columns are widened by schema evolution only"),
    ),
    _writer("domainMetadata", yes("domains are kept")),
    _writer(
        "clustering",
        yes("written without clustering the rows; the clustering columns are kept"),
        requires=("domainMetadata",),
    ),
    Feature(
        name="rowTracking",
        append=yes("new files get row ids at commit"),
        overwrite=yes("new files get row ids at commit"),
        merge=yes("rows that move keep their ids in hidden columns"),
        convert=yes("new files get row ids at commit"),
        requires=("domainMetadata",),
        used=usage.when_set("enable_row_tracking"),
    ),
    _writer(
        "v2Checkpoint",
        yes("checkpoints are a JSON file and a sidecar while the policy is v2"),
        reader=True,
        used=usage.v2_checkpoints,
    ),
    _writer("inCommitTimestamp", YES, used=usage.when_set("in_commit_timestamps")),
    _writer("vacuumProtocolCheck", yes("the protocol is checked before a VACUUM"), reader=True),
    _writer(
        "checkpointProtection",
        yes("checkpoints it protects are removed all together or not at all"),
    ),
    _writer(
        "materializePartitionColumns",
        yes(_MATERIALIZED),
        used=usage.when_set("enable_materialized_partition_columns"),
        convert=no(_OLD_FILES),
    ),
    *(
        _writer(
            f"icebergCompatV{version}",
            yes("the rules are kept by every commit; REORG ... UPGRADE UNIFORM rewrites old files"),
            requires=("columnMapping",),
            used=usage.when_set(f"enable_iceberg_compat_v{version}"),
            convert=inactive("the files to convert do not keep the rules"),
        )
        for version in (1, 2)
    ),
    _writer(
        "icebergCompatV3",
        inactive(_ICEBERG_V3),
        administer=inactive(_ICEBERG_V3),
        requires=("columnMapping", "rowTracking"),
        used=usage.when_set("enable_iceberg_compat_v3"),
    ),
    _writer(
        "variantType",
        YES,
        reader=True,
        used=_HAS_VARIANT,
    ),
    _writer("variantType-preview", YES, reader=True, enabled_by=Enablement.NAME, used=_HAS_VARIANT),
    *(
        _writer(
            name,
            yes("texts are compared by their collation; files get no statistics by collation"),
            enabled_by=Enablement.NAME,
            used=usage.when_fields_have(COLLATIONS),
        )
        for name in ("collations", "collations-preview")
    ),
    *(
        _writer(
            name,
            yes("new files are not shredded"),
            reader=True,
            enabled_by=enabled_by,
            enabling=_SHREDS,
            requires=requires,
            read=yes("shredded files are read where Spark reads them: 4.0 does not"),
            used=usage.any_of(_SHREDS, _HAS_VARIANT),
        )
        for name, requires, enabled_by in (
            ("variantShredding", ("variantType",), Enablement.USE),
            ("variantShredding-preview", (), Enablement.NAME),
        )
    ),
    *(
        _writer(
            name,
            yes(_GEO),
            reader=True,
            enabled_by=enabled_by,
            read=yes(_GEO),
            used=_HAS_GEO,
        )
        for name, enabled_by in (
            ("geospatial", Enablement.USE_IN_NEW_TABLE),
            ("geospatial-dev", Enablement.NAME),
        )
    ),
    _writer(
        "catalogManaged",
        yes("commits are staged, ratified by the catalog, and published"),
        reader=True,
        enabled_by=Enablement.NAME,
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        read=yes("by the table's name in its catalog; a path is refused"),
        convert=no("a directory has no catalog"),
        administer=yes("OPTIMIZE, VACUUM, REORG and log clean-up are left to the catalog"),
    ),
    _writer(
        "coordinatedCommits-preview",
        no(_CATALOG),
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        read=no(_CATALOG),
    ),
    _writer(
        "adaptiveMetadata-preview",
        no("the layout of its log is not implemented"),
        reader=True,
        requires=(
            "rowTracking",
            "domainMetadata",
            "catalogManaged",
            "columnMapping",
            "deletionVectors",
        ),
        read=no("the layout of its log is not implemented"),
    ),
    _writer("redirectReaderWriter-preview", no(_REDIRECT), reader=True, read=no(_REDIRECT)),
    _writer("redirectWriterOnly-preview", no(_REDIRECT)),
)

FEATURES_BY_NAME: Mapping[str, Feature] = {feature.name: feature for feature in FEATURES}
