"""Migration checks of a script for delta-spark: calls with another meaning, found by parsing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from puredelta.errors import InvalidRequestError, Message
from puredelta.inspection.findings import Finding, Severity
from puredelta.quantities import counted


class Where(Enum):
    """The part of a script that a rule searches."""

    IMPORT = "the name of an imported module"
    CALL = "the name of a called function or method"
    STRING = "a text, case ignored"
    ATTRIBUTE = "the name of an attribute"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationRule:
    """One rule of the search."""

    name: str
    where: Where
    matches: tuple[str, ...]
    """Names, or parts of a text."""
    severity: Severity
    message: str
    mend: str


RULES = (
    MigrationRule(
        name="import-tables",
        where=Where.IMPORT,
        matches=("delta.tables",),
        severity=Severity.ERROR,
        message="delta.tables is delta-spark's module.",
        mend="from puredelta.tables import DeltaTable, or puredelta.activate(spark, "
        "delta_module=True) before the import",
    ),
    MigrationRule(
        name="import-exceptions",
        where=Where.IMPORT,
        matches=("delta.exceptions",),
        severity=Severity.ERROR,
        message="delta.exceptions is delta-spark's module.",
        mend="from puredelta.exceptions import ...: the names are the same",
    ),
    MigrationRule(
        name="import-pip-utils",
        where=Where.IMPORT,
        matches=("delta", "delta.pip_utils"),
        severity=Severity.ERROR,
        message="The module delta is delta-spark's.",
        mend="from puredelta import configure_spark_with_delta_pip, or leave the call out",
    ),
    MigrationRule(
        name="session-extension",
        where=Where.STRING,
        matches=("io.delta.sql.deltasparksessionextension",),
        severity=Severity.ERROR,
        message="The session is configured for delta-spark's extension, whose class is in its JAR.",
        mend="Remove spark.sql.extensions and call puredelta.activate(spark)",
    ),
    MigrationRule(
        name="session-catalog",
        where=Where.STRING,
        matches=("org.apache.spark.sql.delta.catalog.deltacatalog",),
        severity=Severity.ERROR,
        message="The session catalog is delta-spark's, whose class is in its JAR.",
        mend="Remove spark.sql.catalog.spark_catalog",
    ),
    MigrationRule(
        name="session-packages",
        where=Where.STRING,
        matches=("io.delta:delta",),
        severity=Severity.ERROR,
        message="The session loads delta-spark's JAR, so puredelta.activate leaves it alone.",
        mend="Remove it from spark.jars.packages",
    ),
    MigrationRule(
        name="log-store",
        where=Where.STRING,
        matches=("spark.delta.logstore", "io.delta.storage"),
        severity=Severity.WARNING,
        message="Log stores of delta-spark are not used: writers are safe on S3 without DynamoDB. "
        "Remove the setting: where it names S3DynamoDBLogStore, writes are refused.",
        mend="Remove the setting, once no delta-spark writes the table (docs/storage.md)",
    ),
    MigrationRule(
        name="jvm",
        where=Where.ATTRIBUTE,
        matches=("_jvm", "_jdf", "_jsparkSession", "_sc"),
        severity=Severity.WARNING,
        message="The script reaches into Spark's JVM, where there is no Delta here.",
        mend="Use DeltaTable or puredelta.sql; batch.sparkSession instead of batch._jdf",
    ),
    MigrationRule(
        name="uniform",
        where=Where.STRING,
        matches=("delta.universalformat",),
        severity=Severity.WARNING,
        message="Iceberg metadata is written below `_iceberg`, in no metastore; Hudi's is refused.",
        mend="Register the export in the catalog (docs/guides/iceberg.md)",
    ),
    MigrationRule(
        name="iceberg-compat-v3",
        where=Where.STRING,
        matches=("delta.enableicebergcompatv3",),
        severity=Severity.ERROR,
        message="IcebergCompatV3 is refused: its rules are no part of the protocol yet.",
        mend="Use version 2, or leave such tables to delta-spark",
    ),
    MigrationRule(
        name="catalog-managed",
        where=Where.STRING,
        matches=("delta.feature.catalogmanaged", "catalogowned"),
        severity=Severity.ERROR,
        message="Tables whose commits go through a catalog are refused.",
        mend="Leave such tables to delta-spark",
    ),
    MigrationRule(
        name="multi-table-names",
        where=Where.CALL,
        matches=("forName",),
        severity=Severity.INFO,
        message="DeltaTable.forName finds tables of the session catalog of a classic session; over "
        "Connect only delta.`/path` is known.",
        mend="Over Connect use DeltaTable.forPath",
    ),
    MigrationRule(
        name="generate",
        where=Where.CALL,
        matches=("generate",),
        severity=Severity.INFO,
        message="Manifests are written as delta-spark writes them, by the driver.",
        mend="Nothing, unless a table has very many partitions",
    ),
    MigrationRule(
        name="cache-setting",
        where=Where.STRING,
        matches=("spark.databricks.io.cache",),
        severity=Severity.INFO,
        message="A setting of Databricks that is not read here.",
        mend="Remove it; docs/configuration.md lists what is read",
    ),
)
"""In the order in which a person would fix them."""


def script_findings(script: Path) -> Iterator[Finding]:
    """Yield the findings in a script, in the order of its lines.

    Raises:
        InvalidRequestError: it is no Python that this Python can parse.
        FileNotFoundError: there is no such file.
    """
    try:
        tree = ast.parse(script.read_bytes(), filename=str(script))
    except (SyntaxError, ValueError) as error:
        raise InvalidRequestError(
            Message.INVALID_WRITE_OPTION_SCRIPT, error=error, path=script
        ) from error
    found = {(line, rule.name): rule for line, rule in _matches(tree)}
    for (line, _), rule in sorted(found.items(), key=lambda item: item[0]):
        yield Finding(
            check=f"migrate-{rule.name}",
            severity=rule.severity,
            message=f"{script}:{line}: {rule.message}",
            mend=rule.mend,
        )
    if not _activates(tree):
        yield Finding(
            check="migrate-activate",
            severity=Severity.WARNING,
            message=f"{script}: nothing calls puredelta.activate(spark).",
            mend="Call it once after the session is made: writes, SQL and names need it",
        )
    if not found:
        yield Finding(
            check="migrate",
            severity=Severity.OK,
            message=f"{script}: none of {counted(len(RULES), 'rule')} applies.",
        )


def _matches(tree: ast.Module) -> Iterator[tuple[int, MigrationRule]]:
    for node in ast.walk(tree):
        where, names = _subject(node)
        if where is None:
            continue
        for rule in RULES:
            if rule.where is where and any(_fits(rule, name) for name in names):
                yield getattr(node, "lineno", 1), rule


def _subject(node: ast.AST) -> tuple[Where | None, tuple[str, ...]]:
    """Return the part of a node that rules may name."""
    match node:
        case ast.Import(names=names):
            return Where.IMPORT, tuple(alias.name for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            return Where.IMPORT, (module,)
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return Where.CALL, (name,)
        case ast.Attribute(attr=name):
            return Where.ATTRIBUTE, (name,)
        case ast.Constant(value=str(text)):
            return Where.STRING, (text.lower(),)
        case _:
            return None, ()


def _fits(rule: MigrationRule, name: str) -> bool:
    if rule.where is Where.STRING:
        return any(part in name for part in rule.matches)
    return name in rule.matches


def _activates(tree: ast.Module) -> bool:
    calls = (_subject(node) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(where is Where.CALL and "activate" in names for where, names in calls)
