"""A script written for delta-spark, parsed and compared with rules; it is never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.inspection.findings import Finding, Severity
from puredelta.inspection.migration.rules import RULES, MigrationRule, Where
from puredelta.quantities import counted


def script_findings(script: Path) -> Iterator[Finding]:
    """Yield what in a script needs a look, in the order of its lines.

    Raises:
        InvalidRequestError: it is no Python that this Python can parse.
        FileNotFoundError: there is no such file.
    """
    try:
        tree = ast.parse(script.read_bytes(), filename=str(script))
    except (SyntaxError, ValueError) as error:
        raise InvalidRequestError(
            f"{script} is no Python: {error}.", code=ErrorCode.INVALID_WRITE_OPTION, path=script
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
    """Return what of a node rules may name."""
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
