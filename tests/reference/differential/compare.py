"""Where two outcomes of one case differ, as text; and the smallest case that still does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.reference.differential.execute import Outcome
from tests.reference.differential.generate import Case


def differences(case: Case, theirs: Outcome, ours: Outcome) -> list[str]:
    """Every way in which ``ours`` is not what the reference did; empty when equal.

    What ``docs/differences.md`` lists as an improvement is none.
    """
    if theirs.error_classes or ours.error_classes:
        return _error_differences(case, theirs, ours)
    found = []
    if theirs.result != ours.result:
        found.append(f"result row: {theirs.result} / {ours.result}")
    if theirs.rows != ours.rows:
        lost = [row for row in theirs.rows if row not in ours.rows]
        extra = [row for row in ours.rows if row not in theirs.rows]
        found.append(f"rows: only theirs {lost[:4]} / only ours {extra[:4]}")
    if theirs.schema != ours.schema:
        found.append(f"schema: {theirs.schema} / {ours.schema}")
    if theirs.committed != ours.committed:
        if ours.committed or _changes_something(theirs):
            found.append(f"committed: {theirs.committed} / {ours.committed}")
        return found
    wrong = [
        f"{name} {their} / {our}"
        for (name, their), (_, our) in zip(theirs.metrics, ours.metrics, strict=True)
        if their != our and not _miscounts_source(case, name, theirs, our)
    ]
    if wrong:
        found.append("metrics: " + ", ".join(wrong))
    if theirs.changes != ours.changes:
        found.append(f"change rows: {theirs.changes} / {ours.changes}")
    return found


def _changes_something(outcome: Outcome) -> bool:
    """Tell whether a commit changed rows; the reference also commits rewrites that do not."""
    return outcome.result is None or any(outcome.result)


def _miscounts_source(case: Case, name: str, theirs: Outcome, our: str | None) -> bool:
    """The reference counts what its joins happen to scan.

    That is the source twice where the join is no equi-join, and nothing of it where Spark
    sees that ON is never true and leaves the join out.
    """
    rows, metrics = len(case.source_rows), dict(theirs.metrics)
    their = metrics.get(name)
    if name != "numSourceRows" or our != str(rows):
        return False
    matched = ("numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted")
    nothing_matched = all(metrics.get(key) == "0" for key in matched)
    return their == str(2 * rows) or (their == "0" and nothing_matched)


def _error_differences(case: Case, theirs: Outcome, ours: Outcome) -> list[str]:
    if not theirs.error_classes:
        return [f"only ours fails: {ours.error_text[:400]}"]
    if not ours.error_classes:
        known = (
            _is_internal(theirs),
            _reads_rows_in_vain(case, theirs),
            _spells_a_column_otherwise(case, theirs),
            _casts_as_no_text_does(case, theirs),
        )
        if any(known):
            return []
        return [f"only theirs fails: {theirs.error_classes} {theirs.error_text[:400]}"]
    found = []
    alike = ours.error_classes[0] in theirs.error_classes
    if not (alike or _is_internal(theirs) or _names_another_mistake(case, ours)):
        found.append(f"error class: {theirs.error_classes} / {ours.error_classes}")
    if ours.committed or theirs.rows != ours.rows:
        found.append("a failed statement changed the table")
    return found


def _is_internal(outcome: Outcome) -> bool:
    """Tell whether the reference failed where it thinks it cannot."""
    return (
        outcome.error_classes == ("INTERNAL_ERROR",)
        or "did not match any merge clause" in outcome.error_text
    )


def _reads_rows_in_vain(case: Case, outcome: Outcome) -> bool:
    """Tell whether the condition failed over target rows that no source row could match."""
    without_source = case.statement == "merge" and not case.source_rows
    return without_source and outcome.error_classes[0] in ("CAST_INVALID_INPUT", "CAST_OVERFLOW")


def _casts_as_no_text_does(case: Case, outcome: Outcome) -> bool:
    """Tell whether the builder's UPDATE raised where the same UPDATE as text gives NULL."""
    return (
        case.statement == "update"
        and case.api == "builder"
        and case.conf.get("spark.sql.storeAssignmentPolicy") == "LEGACY"
        and outcome.error_classes[0] == "CAST_INVALID_INPUT"
    )


def _names_another_mistake(case: Case, ours: Outcome) -> bool:
    """Tell whether an expression of one clause is a mistake, and the reference found another."""
    return (
        len(case.clauses) > 1 and ours.error_classes[0] == "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"
    )


def _spells_a_column_otherwise(case: Case, outcome: Outcome) -> bool:
    """Tell whether a source column is one of the table's but for case, and names are case
    sensitive: the reference finds neither the column nor that it is a new one.
    """
    known = {column.name for column in case.target}
    folded = {name.lower() for name in known}
    return (
        case.evolve
        and case.conf.get("spark.sql.caseSensitive") == "true"
        and outcome.error_classes[0]
        in ("DELTA_MISSING_SET_COLUMN", "DELTA_MERGE_UNRESOLVED_EXPRESSION")
        and any(c.name not in known and c.name.lower() in folded for c in case.source)
    )


def minimise(case: Case, differs: Callable[[Case], bool], *, attempts_max: int = 60) -> Case:
    """Return a smaller case for which ``differs`` still holds: greedy, bounded."""
    attempts = 0
    shrunk = True
    while shrunk and attempts < attempts_max:
        shrunk = False
        for smaller in _smaller(case):
            attempts += 1
            if attempts > attempts_max:
                break
            if differs(smaller):
                case, shrunk = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for key in case.properties:
        yield replace(case, properties={k: v for k, v in case.properties.items() if k != key})
    for key in case.conf:
        yield replace(case, conf={k: v for k, v in case.conf.items() if k != key})
    if case.partition_by:
        yield replace(case, partition_by=())
    if case.evolve:
        yield replace(case, evolve=False)
    for at in range(len(case.clauses)):
        if len(case.clauses) > 1:
            yield replace(case, clauses=case.clauses[:at] + case.clauses[at + 1 :])
    for at, clause in enumerate(case.clauses):
        if clause.condition is not None:
            lighter = replace(clause, condition=None)
            yield replace(case, clauses=(*case.clauses[:at], lighter, *case.clauses[at + 1 :]))
    for at in range(len(case.source_rows)):
        yield replace(case, source_rows=case.source_rows[:at] + case.source_rows[at + 1 :])
    for file, rows in enumerate(case.target_files):
        for at in range(len(rows)):
            fewer = (*rows[:at], *rows[at + 1 :])
            files = (*case.target_files[:file], fewer, *case.target_files[file + 1 :])
            yield replace(case, target_files=files)
