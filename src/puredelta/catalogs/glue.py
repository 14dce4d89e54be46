"""The AWS Glue Data Catalog, by the extra ``puredelta[glue]`` (boto3).

Entries have the parameters that Spark, Athena and Trino know Delta tables by. The definition of a
table is in its log; the columns of an entry are a copy for engines that read the catalog alone.
Glue hands out no storage keys and ratifies no commits.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import quote, unquote

from puredelta.catalogs.answers import location_from
from puredelta.catalogs.catalog import (
    NO_UPDATE,
    CatalogEntry,
    CommittedVersion,
    DescribedSchema,
    KeylessCatalog,
    ListedTable,
    LoadedTable,
    RatifiedCommit,
    StagedTable,
    TableCreation,
    TableIdentifier,
    TableKind,
    TableUpdate,
    is_same_place,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.errors import InvalidRequestError, Message

FORMAT = "delta"
_PROVIDER = "spark.sql.sources.provider"
_TABLE_TYPE = "table_type"
_LAYOUT = {
    "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
}
"""The classes that Spark and Athena write for a table that Hive cannot read."""
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"

_TYPES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "timestamp_ntz": "timestamp",
    "void": "string",
    "variant": "string",
}
"""Types with another name there; those without an equal one are listed as texts."""
_SAME = frozenset({"string", "boolean", "float", "double", "date", "timestamp", "binary"})
_COMMENT_MAX = 255
_TYPE_MAX = 131_072


def glue_columns(schema: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the columns of a schema, as the log has it, for an entry of Glue.

    Partition columns are among them, as Spark and Athena list them.

    >>> glue_columns({"type": "struct", "fields": [{"name": "id", "type": "long"}]})
    [{'Name': 'id', 'Type': 'bigint'}]
    """
    fields = () if schema is None else schema.get("fields") or ()
    return [_column(field) for field in fields]


def _column(field: Mapping[str, Any]) -> dict[str, str]:
    kind = hive_type(field["type"])
    column = {"Name": str(field["name"]), "Type": kind if len(kind) <= _TYPE_MAX else "string"}
    comment = (field.get("metadata") or {}).get("comment")
    if comment:
        column["Comment"] = str(comment)[:_COMMENT_MAX]
    return column


def hive_type(kind: Any) -> str:
    """Return a type of the log under its name in Hive.

    >>> hive_type({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    >>> hive_type("decimal(10,2)"), hive_type("timestamp_ntz")
    ('decimal(10,2)', 'timestamp')
    """
    if isinstance(kind, str):
        plain = kind.replace(" ", "")
        is_known = plain in _SAME or plain.startswith(("decimal(", "char(", "varchar("))
        return plain if is_known else _TYPES.get(plain, "string")
    match kind.get("type"):
        case "array":
            return f"array<{hive_type(kind['elementType'])}>"
        case "map":
            return f"map<{hive_type(kind['keyType'])},{hive_type(kind['valueType'])}>"
        case "struct":
            inner = (f"{one['name']}:{hive_type(one['type'])}" for one in kind["fields"])
            return f"struct<{','.join(inner)}>"
        case _:
            return "string"


def glue_entry(name: str, location: str, definition: TableUpdate) -> dict[str, Any]:
    """Return the entry of a new table; the location is decoded, as these engines write it."""
    entry: dict[str, Any] = {
        "Name": name.lower(),
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": FORMAT,
            _PROVIDER: FORMAT,
            _TABLE_TYPE: FORMAT.upper(),
        },
        "PartitionKeys": [],
        "StorageDescriptor": {
            **_LAYOUT,
            "Columns": glue_columns(definition.columns),
            "Location": location,
            "SerdeInfo": {
                "SerializationLibrary": _SERDE,
                "Parameters": {"serialization.format": "1", "path": location},
            },
        },
    }
    if definition.comment:
        entry["Description"] = definition.comment
    return entry


def storage_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of an entry about its files."""
    found: Mapping[str, Any] = row.get("StorageDescriptor") or {}
    return found


def stated_location(row: Mapping[str, Any]) -> str:
    """Return the location in an entry; empty for a view, and for an entry without one."""
    storage = storage_of(row)
    serde = (storage.get("SerdeInfo") or {}).get("Parameters") or {}
    stated = str(serde.get("path") or storage.get("Location") or "")
    stated = stated or str((row.get("Parameters") or {}).get("location", ""))
    is_none = kind_of(row) == "VIEW" or stated.endswith(_PLACEHOLDER)
    return "" if is_none else stated


def _number(parameters: Mapping[str, Any], key: str) -> int:
    """Return a parameter; -1 if it is no number."""
    text = str(parameters.get(key, ""))
    return int(text) if text.isascii() and text.isdecimal() else -1


def kind_of(row: Mapping[str, Any]) -> str:
    """Return ``EXTERNAL``, ``MANAGED``, ``VIEW``, or Glue's own word."""
    kind = str(row.get("TableType") or "")
    return {"EXTERNAL_TABLE": "EXTERNAL", "MANAGED_TABLE": "MANAGED", "VIRTUAL_VIEW": "VIEW"}.get(
        kind, kind or "EXTERNAL"
    )


def format_of(row: Mapping[str, Any]) -> str:
    """Return the format of an entry in lower case, whatever engine has written it.

    >>> format_of({"Parameters": {"table_type": "DELTA"}})
    'delta'
    """
    given = {str(key).lower(): str(text) for key, text in (row.get("Parameters") or {}).items()}
    stated = [given.get(key, "").lower() for key in (_PROVIDER, _TABLE_TYPE, "classification")]
    if FORMAT in stated:
        return FORMAT
    layout = str(storage_of(row).get("InputFormat") or "").lower()
    by_class = next((name for name in ("parquet", "orc", "avro") if name in layout), "")
    return next((name for name in (*stated, by_class) if name), "")


_PLACEHOLDER = "__PLACEHOLDER__"
_KEPT = ("Description", "Owner", "Parameters", "PartitionKeys", "Retention", "TableType")
"""Parts of an entry that an update sends back."""
_CODES = {
    "EntityNotFoundException": Refusal.NOT_FOUND,
    "AlreadyExistsException": Refusal.EXISTS,
    "ConcurrentModificationException": Refusal.CHANGED,
    "AccessDeniedException": Refusal.NOT_ALLOWED,
    "ExpiredTokenException": Refusal.NOT_ALLOWED,
    "InvalidSignatureException": Refusal.NOT_ALLOWED,
    "UnrecognizedClientException": Refusal.NOT_ALLOWED,
    "OperationTimeoutException": Refusal.NO_ANSWER,
    "InternalServiceException": Refusal.NO_ANSWER,
    "ThrottlingException": Refusal.NO_ANSWER,
    "VersionMismatchException": Refusal.CHANGED,
    "ExpiredToken": Refusal.NOT_ALLOWED,
    "IncompleteSignature": Refusal.NOT_ALLOWED,
    "InvalidClientTokenId": Refusal.NOT_ALLOWED,
    "MissingAuthenticationToken": Refusal.NOT_ALLOWED,
    "RequestExpired": Refusal.NOT_ALLOWED,
    "FederationSourceRetryableException": Refusal.NO_ANSWER,
    "InternalFailure": Refusal.NO_ANSWER,
    "RequestLimitExceeded": Refusal.NO_ANSWER,
    "ResourceNotReadyException": Refusal.NO_ANSWER,
    "ServiceUnavailable": Refusal.NO_ANSWER,
    "Throttling": Refusal.NO_ANSWER,
    "TooManyRequestsException": Refusal.NO_ANSWER,
}
_FOLLOWED_TIMES_MAX = 5
_SHOWN_VERSION, _SHOWN_TIME = "delta.lastUpdateVersion", "delta.lastCommitTimestamp"
"""The parameters with the version whose definition an entry shows, as delta-spark writes them."""
_STEPS = {
    Refusal.NOT_ALLOWED: " Give the AWS identity of the session glue:{action} on this resource, or "
    "name another one with the setting profile.",
    Refusal.NO_ANSWER: " Check region and network, and try again.",
}


def glue_client(
    *, region: str | None = None, endpoint: str | None = None, profile: str | None = None
) -> Any:
    """Return boto3's client of Glue.

    Raises:
        InvalidRequestError: boto3 is not installed, or the settings name no region.
    """
    try:
        boto3: Any = importlib.import_module("boto3")
        core: Any = importlib.import_module("botocore.exceptions")
    except ImportError as missing:
        raise InvalidRequestError(Message.INVALID_CONF_VALUE_NO_BOTO3) from missing
    try:
        session = boto3.session.Session(profile_name=profile, region_name=region)
        return session.client("glue", endpoint_url=endpoint)
    except (core.BotoCoreError, ValueError) as wrong:
        raise InvalidRequestError(Message.INVALID_CONF_VALUE_GLUE, error=wrong) from wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueCatalog(KeylessCatalog):
    """The databases of a Glue Data Catalog.

    Examples:
        >>> lake = GlueCatalog(name="lake", client=lambda: glue_client(region="eu-west-1"))
        >>> [row.name.table for row in lake.tables("sales")]  # doctest: +SKIP
        ['orders']
    """

    name: str
    client: Callable[[], Any] = field(repr=False)
    """Returns the client, made when it is first needed."""
    catalog_id: str | None = None
    """The AWS account; None: that of the identity."""
    allow_local: bool = False
    """Whether tables may be on a local disk."""

    def schemas(self) -> Iterator[str]:
        """Yield the names of the databases, page by page."""
        for row in self._pages("get_databases", "DatabaseList"):
            yield str(row["Name"])

    def tables(self, schema: str) -> Iterator[ListedTable]:
        """Yield the tables of a database, page by page."""
        for row in self._pages("get_tables", "TableList", DatabaseName=schema.lower()):
            yield ListedTable(
                name=TableIdentifier(self.name, schema, str(row["Name"])),
                format=format_of(row),
                kind=kind_of(row),
            )

    def schema(self, name: str) -> DescribedSchema:
        """Return the database, with its comment, location and parameters."""
        found = self._call("get_database", Name=name.lower())["Database"]
        return DescribedSchema(
            name=name,
            comment=str(found.get("Description") or ""),
            location=str(found.get("LocationUri") or ""),
            properties=dict(found.get("Parameters") or {}),
        )

    def create_schema(self, schema: DescribedSchema) -> None:
        """Make a database; its location is the place of tables that name none."""
        given = {
            "Name": schema.name.lower(),
            "Description": schema.comment,
            "LocationUri": schema.location,
            "Parameters": dict(schema.properties),
        }
        wanted = {key: value for key, value in given.items() if value}
        self._call("create_database", DatabaseInput=wanted)

    def drop_schema(self, name: str, *, cascade: bool) -> None:
        """Remove a database; Glue itself would remove its tables, too."""
        if not cascade:
            self._call("get_database", Name=name.lower())
            first = next(iter(self.tables(name)), None)
            if first is not None:
                raise CatalogRequestError(
                    f"Database {self.name}.{name} is not empty: it has {first.name.table}. Drop "
                    "its tables first, or say CASCADE; files stay.",
                    refusal=Refusal.INVALID,
                )
        self._call("delete_database", Name=name.lower())

    def describe(self, name: TableIdentifier) -> CatalogEntry:
        """Return the entry of a table of any format."""
        row = self._row(name)
        columns = [*storage_of(row).get("Columns", ()), *(row.get("PartitionKeys") or ())]
        return CatalogEntry(
            name=name,
            format=format_of(row),
            kind=kind_of(row),
            location=self._location(row, name) if stated_location(row) else None,
            columns=tuple((str(c["Name"]), str(c.get("Type") or "string")) for c in columns),
            comment=str(row.get("Description") or ""),
        )

    def load(self, name: TableIdentifier) -> LoadedTable:
        """Return a Delta table; its owner is the one of the location."""
        row = self._row(name)
        if format_of(row) != FORMAT:
            raise CatalogRequestError(
                f"Table {name} of the Glue catalog is no Delta table: its format is "
                f"{format_of(row) or 'unknown'}. Only Delta tables can be used here.",
                refusal=Refusal.OTHER_FORMAT,
                table=str(name),
            )
        return LoadedTable(
            name=name,
            table_id=f"{name}@{row.get('CreateTime')}",
            kind=TableKind.EXTERNAL,
            location=self._location(row, name),
            etag=None if row.get("VersionId") is None else str(row["VersionId"]),
            properties=dict(row.get("Parameters") or {}),
        )

    def default_location(self, name: TableIdentifier) -> str:
        """Return the place of a new table without a location: below that of its database.

        Raises:
            InvalidRequestError: the database has no location.
        """
        root = self.schema(name.schema).location.rstrip("/")
        if not root:
            raise InvalidRequestError(
                Message.CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION_DATABASE,
                database=f"{name.catalog}.{name.schema}",
                table=str(name),
            )
        place = quote(f"{root}/{name.table.lower()}", safe="/:@")
        return location_from(place, str(name), allow_local=self.allow_local)

    def create(self, creation: TableCreation) -> LoadedTable:
        """Make the entry of a table that is there."""
        location = unquote(creation.location).replace("s3a://", "s3://", 1)
        definition = creation.definition
        entry = glue_entry(creation.name.table, location, definition)
        database = creation.name.schema.lower()
        self._call("create_table", DatabaseName=database, TableInput=entry)
        return self.load(creation.name)

    def follow(self, name: TableIdentifier, update: TableUpdate, at: CommittedVersion) -> None:
        """List the columns and the comment of a table, unless they are those of a newer version."""
        if update.columns is None and update.comment is None:
            return
        for n in range(_FOLLOWED_TIMES_MAX):
            try:
                self._show(name, update, at)
            except CatalogRequestError as refused:  # noqa: PERF203 - a request takes longer
                if refused.refusal is not Refusal.CHANGED or n == _FOLLOWED_TIMES_MAX - 1:
                    raise
            else:
                return

    def _show(self, name: TableIdentifier, update: TableUpdate, at: CommittedVersion) -> None:
        row = self._row(name)
        known = row.get("Parameters") or {}
        # The log of a table that was made again begins with version 0, at a later time.
        is_older = at.version < _number(known, _SHOWN_VERSION) and (
            at.timestamp_ms <= _number(known, _SHOWN_TIME)
        )
        if is_older or not is_same_place(self._location(row, name), at.location):
            return
        entry = {"Name": row["Name"], **{key: row[key] for key in _KEPT if key in row}}
        entry["StorageDescriptor"] = dict(storage_of(row))
        shown = {_SHOWN_VERSION: str(at.version), _SHOWN_TIME: str(at.timestamp_ms)}
        entry["Parameters"] = {**known, **shown}
        if update.columns is not None:
            entry["StorageDescriptor"]["Columns"] = glue_columns(update.columns)
        if update.comment is not None:
            entry["Description"] = update.comment
        version = {} if row.get("VersionId") is None else {"VersionId": str(row["VersionId"])}
        self._call(
            "update_table",
            DatabaseName=name.schema.lower(),
            TableInput=entry,
            SkipArchive=False,
            **version,
        )

    def drop(self, name: TableIdentifier) -> None:
        """Remove the entry; the files stay."""
        self._call("delete_table", DatabaseName=name.schema.lower(), Name=name.table.lower())

    def rename(self, name: TableIdentifier, new_name: str) -> None:
        """Refuse: Glue gives no entry another name."""
        raise CatalogRequestError(
            f"Glue cannot give {name} the name {new_name}. Create a table of the other name at the "
            "same LOCATION, and drop this one; the files stay.",
            refusal=Refusal.INVALID,
            table=str(name),
        )

    def stage(self, name: TableIdentifier) -> StagedTable:
        """Refuse: Glue chooses no places."""
        self._ratifies_nothing(name)

    def ratify(
        self,
        table: LoadedTable,
        commit: RatifiedCommit,
        update: TableUpdate = NO_UPDATE,
    ) -> LoadedTable:
        """Refuse: Glue ratifies no commits."""
        del commit, update
        self._ratifies_nothing(table.name)

    def report_published(self, table: LoadedTable, version: int) -> None:
        """Refuse: Glue ratifies no commits."""
        del version
        self._ratifies_nothing(table.name)

    def _ratifies_nothing(self, name: TableIdentifier) -> NoReturn:
        raise CatalogRequestError(
            f"Table {name} cannot be catalog-managed: Glue ratifies no commits. Name a LOCATION.",
            refusal=Refusal.INVALID,
            table=str(name),
        )

    def _row(self, name: TableIdentifier) -> Mapping[str, Any]:
        found = self._call("get_table", DatabaseName=name.schema.lower(), Name=name.table.lower())
        row: Mapping[str, Any] = found["Table"]
        return row

    def _location(self, row: Mapping[str, Any], name: TableIdentifier) -> str:
        stated = stated_location(row)
        if not stated:
            raise CatalogRequestError(
                f"The Glue entry of {name} has no location. Drop the entry, which keeps the files, "
                "and create the table with its LOCATION.",
                refusal=Refusal.INVALID,
                table=str(name),
            )
        place = quote(stated, safe="/:@")
        return location_from(place, str(name), allow_local=self.allow_local)

    def _pages(self, action: str, key: str, **given: Any) -> Iterator[Mapping[str, Any]]:
        token: str | None = None
        while True:
            more = {} if token is None else {"NextToken": token}
            page = self._call(action, **given, **more)
            yield from page.get(key) or ()
            token = page.get("NextToken") or None
            if token is None:
                return

    def _call(self, action: str, **given: Any) -> Any:
        """Call the service; its own client repeats calls that it may repeat."""
        core: Any = importlib.import_module("botocore.exceptions")
        account = {} if self.catalog_id is None else {"CatalogId": self.catalog_id}
        try:
            return getattr(self.client(), action)(**given, **account)
        except core.ClientError as refused:
            said = refused.response.get("Error", {})
            refusal = _CODES.get(str(said.get("Code")), Refusal.INVALID)
            text = f"{said.get('Code')}: {said.get('Message')}"
        except core.NoCredentialsError:
            refusal, text = Refusal.NOT_ALLOWED, "there are no AWS credentials"
        except core.BotoCoreError as failed:
            refusal, text = Refusal.NO_ANSWER, str(failed)
        step = _STEPS.get(refusal, "").format(action=_camel(action))
        raise CatalogRequestError(
            f"Glue refused {_camel(action)} in catalog {self.name}: {text.rstrip('.')}.{step}",
            refusal=refusal,
            catalog=self.name,
        ) from None


def _camel(action: str) -> str:
    return "".join(part.title() for part in action.split("_"))
