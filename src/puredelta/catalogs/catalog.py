"""The protocol of a catalog, and the values that it gives and takes.

A catalog knows tables by a name of three parts. Some of its tables are *catalog-managed*: a commit
to such a table counts only after the catalog has ratified it. Everything a catalog answers is
input from outside: locations and file names are checked where they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

from puredelta.protocol.actions.log_paths import STAGED_DIRECTORY, staged_version

MANAGED_FEATURE = "delta.feature.catalogManaged"
"""The property that makes a table catalog-managed; it decides before any log file is read."""
TABLE_ID = "io.unitycatalog.tableId"
"""The property that ties a log to its table in the catalog."""


class TableKind(Enum):
    """The owner of a table's files."""

    MANAGED = "MANAGED"
    """The catalog chose the location, and removes the files when the table is dropped."""
    EXTERNAL = "EXTERNAL"


class KeyUse(Enum):
    """The use of storage keys."""

    READ = "READ"
    READ_WRITE = "READ_WRITE"


@dataclass(frozen=True, slots=True)
class TableIdentifier:
    """The name of a table in a catalog.

    >>> str(TableIdentifier("main", "sales", "orders"))
    'main.sales.orders'
    """

    catalog: str
    schema: str
    table: str

    @property
    def parts(self) -> tuple[str, str, str]:
        """The name in parts."""
        return (self.catalog, self.schema, self.table)

    def __str__(self) -> str:
        return ".".join(self.parts)


_SCHEME = "puredelta-catalog:/"
_NUM_PARTS = 3


def address_of(name: TableIdentifier) -> str:
    """Return the address of a table: a location of a scheme that no storage has.

    >>> address_of(TableIdentifier("main", "sales", "a/b"))
    'puredelta-catalog:/main/sales/a%2Fb'
    """
    return _SCHEME + "/".join(quote(part, safe="") for part in name.parts)


def name_of_address(location: str) -> TableIdentifier | None:
    """Return the name in an address, None for a location of storage.

    >>> str(name_of_address("puredelta-catalog:/main/sales/orders"))
    'main.sales.orders'
    """
    if not location.startswith(_SCHEME):
        return None
    parts = [unquote(part) for part in location.removeprefix(_SCHEME).split("/")]
    return TableIdentifier(*parts) if len(parts) == _NUM_PARTS else None


def is_same_place(one: str, other: str) -> bool:
    """Return whether two decoded locations are one directory, however its scheme is spelled.

    >>> is_same_place("file:///data/t/", "file:/data/t"), is_same_place("s3://b/t", "s3a://b/t")
    (True, True)
    """
    first, second = (urlsplit(location)[1:] for location in (one.rstrip("/"), other.rstrip("/")))
    return first == second


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A commit that the catalog has accepted, or is asked to accept."""

    version: int
    timestamp_ms: int
    """Its in-commit timestamp."""
    file_name: str
    """In ``_delta_log/_staged_commits``."""
    size_bytes: int
    modified_ms: int

    @property
    def path(self) -> str:
        """The staged file, relative to the table's root."""
        return f"{STAGED_DIRECTORY}/{self.file_name}"

    @property
    def is_well_named(self) -> bool:
        """Whether the file name is that of this version, and of no other directory.

        >>> commit = RatifiedCommit(
        ...     version=3, timestamp_ms=1, file_name="../../x.json", size_bytes=1, modified_ms=1
        ... )
        >>> commit.is_well_named
        False
        """
        return staged_version(self.file_name) == self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """The answer of a catalog about one Delta table, consistent in itself."""

    name: TableIdentifier
    table_id: str
    kind: TableKind
    location: str
    """Decoded, as `puredelta.store.registry.Storage.open` takes it."""
    etag: str | None = None
    """Changes with the metadata in the catalog, not with commits of data."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The catalog's copy. The log has the real ones, except `MANAGED_FEATURE`."""
    commits: tuple[RatifiedCommit, ...] = ()
    """Ratified and not yet forgotten after their publication, oldest first, without a gap."""
    latest_version: int | None = None
    """The newest version; None where the catalog ratifies no commits of the table."""

    @property
    def is_catalog_managed(self) -> bool:
        """Whether commits need the catalog."""
        return self.properties.get(MANAGED_FEATURE) == "supported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """One row of a listing."""

    name: TableIdentifier
    format: str
    """In lower case."""
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A table of any format, as the catalog describes it."""

    name: TableIdentifier
    format: str
    """In lower case; empty for a view."""
    kind: str
    """``MANAGED``, ``EXTERNAL``, or the catalog's own word."""
    location: str | None
    """Decoded; None for what has no files."""
    columns: tuple[tuple[str, str], ...] = ()
    """Names with Spark's types as text; empty where the catalog does not know them."""
    comment: str = ""

    @property
    def is_view(self) -> bool:
        """Whether it has no files of its own: VIEW, METRIC_VIEW or another word for one."""
        return "VIEW" in self.kind.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSchema:
    """A schema, as the catalog describes it."""

    name: str
    comment: str = ""
    location: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable:
    """A place that the catalog has chosen for a new table, with the demands on it."""

    table_id: str
    location: str
    stated_location: str
    """The location as the catalog spells it: it wants to have it back so."""
    required_features: tuple[str, ...]
    suggested_features: tuple[str, ...]
    required_properties: Mapping[str, str]
    suggested_properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendedKeys:
    """Storage keys for the files below a prefix; as text it shows no key."""

    prefix: str
    options: Mapping[str, str] = field(repr=False)
    """Options of the object store, by obstore's names; empty for a local path."""
    expires_ms: int | None
    """None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpdate:
    """The changes of a table that the catalog learns together with their commit.

    None, and an empty mapping, stand for no change. Values are JSON as the log has it.
    """

    columns: Mapping[str, Any] | None = None
    """The schema."""
    partition_columns: Sequence[str] | None = None
    set_properties: Mapping[str, str] = field(default_factory=dict)
    removed_properties: Sequence[str] = ()
    comment: str | None = None
    """An empty text removes it."""
    protocol: Mapping[str, Any] | None = None
    domains: Mapping[str, Any] = field(default_factory=dict)
    """Configurations of domains, by domain."""
    removed_domains: Sequence[str] = ()

    @property
    def changes_metadata(self) -> bool:
        """Whether more than domains changes: two such changes must not cross each other."""
        return (
            self.columns is not None
            or self.partition_columns is not None
            or bool(self.set_properties or self.removed_properties)
            or self.comment is not None
            or self.protocol is not None
        )


NO_UPDATE = TableUpdate()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedVersion:
    """A commit that no catalog ratified, as a catalog learns of it afterwards."""

    location: str
    """Of the table that it belongs to."""
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCreation:
    """A table whose version 0 is written, as the catalog learns of it."""

    name: TableIdentifier
    kind: TableKind
    location: str
    definition: TableUpdate
    timestamp_ms: int
    """Of version 0."""


class Catalog(Protocol):
    """One catalog.

    Calls raise `puredelta.catalogs.failures.CatalogRequestError` where it refuses.
    """

    @property
    def name(self) -> str:
        """The first part of the names of its tables."""

    def schemas(self) -> Iterator[str]:
        """Yield the names of the schemas."""

    def tables(self, schema: str) -> Iterator[ListedTable]:
        """Yield the tables of a schema, in the order of their names, of every format."""

    def load(self, name: TableIdentifier) -> LoadedTable:
        """Return what the catalog knows of a Delta table; asked again for every snapshot."""

    def stage(self, name: TableIdentifier) -> StagedTable:
        """Ask for the place of a new table."""

    def create(self, creation: TableCreation) -> LoadedTable:
        """Make a table known whose version 0 is written."""

    def ratify(
        self,
        table: LoadedTable,
        commit: RatifiedCommit,
        update: TableUpdate = NO_UPDATE,
    ) -> LoadedTable:
        """Commit a staged file, with the changes of its metadata, in one request.

        The same file name may be sent again: an accepted commit is accepted only once. Where the
        metadata changes, ``table`` must be as the catalog has it.
        """

    def report_published(self, table: LoadedTable, version: int) -> None:
        """Say that every commit up to a version is a plain file of the log."""

    def rename(self, name: TableIdentifier, new_name: str) -> None:
        """Give a table another name in its schema."""

    def drop(self, name: TableIdentifier) -> None:
        """Remove a table; the files of a managed one are removed, too."""

    def keys(self, table: LoadedTable, operation: KeyUse) -> Sequence[VendedKeys]:
        """Return storage keys for the files of a table; none for a local path."""

    def keys_of_stage(self, staged: StagedTable) -> Sequence[VendedKeys]:
        """Return storage keys for a place that `stage` has given."""

    def keys_of_path(self, location: str) -> Sequence[VendedKeys]:
        """Return storage keys for the location of a new external table."""


class KeylessCatalog:
    """The part of a catalog that vends no keys: files are reached with the keys of the session."""

    __slots__ = ()

    def keys(self, table: LoadedTable, operation: KeyUse) -> Sequence[VendedKeys]:
        """Return none."""
        del table, operation
        return ()

    def keys_of_stage(self, staged: StagedTable) -> Sequence[VendedKeys]:
        """Return none."""
        del staged
        return ()

    def keys_of_path(self, location: str) -> Sequence[VendedKeys]:
        """Return none."""
        del location
        return ()


class ListedCatalog(Catalog, Protocol):
    """A catalog with what statements need beyond the tables themselves."""

    def schema(self, name: str) -> DescribedSchema:
        """Return what the catalog says of a schema."""

    def create_schema(self, schema: DescribedSchema) -> None:
        """Make a schema."""

    def drop_schema(self, name: str, *, cascade: bool) -> None:
        """Remove a schema; with its tables only if ``cascade``."""

    def default_location(self, name: TableIdentifier) -> str | None:
        """Return the place of a new table that names none; None where `stage` chooses it."""

    def follow(self, name: TableIdentifier, update: TableUpdate, at: CommittedVersion) -> None:
        """Take over the changes of a table whose commits the catalog does not ratify.

        Nothing happens if the name has come to mean another table, or shows a newer version.
        """

    def describe(self, name: TableIdentifier) -> CatalogEntry:
        """Return what the catalog says of a table of any format."""
