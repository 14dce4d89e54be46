"""What every recipe takes beside its own arguments, and how arguments are checked.

A wrong argument is an `InvalidRequestError` before the table is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from typing_extensions import TypedDict

from puredelta.commands.dml.spec.arguments import require_source
from puredelta.commands.settings import set_transaction_of
from puredelta.commands.write.expectations import Expectations, RowCheck
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import SetTransaction

Choice = TypeVar("Choice", bound=Enum)


class RecipeOptions(TypedDict, total=False):
    """Options that every recipe takes."""

    create: bool
    """Create the table, empty, if it is not there; its columns are the source's."""
    partition_by: Sequence[str] | str
    """Partition columns of a table that is created."""
    evolve_schema: bool
    """Let the table take on columns of the source that it lacks; else they are left out."""
    txn_app_id: str
    txn_version: int
    """The application and its version: a call with a version that the table has is not executed
    again. In ``foreachBatch`` a name of the stream, and the batch's id."""
    expectations: Expectations
    """Conditions on rows of the source by name, see `Expectation`; text alone is a warning."""
    quarantine: str | os.PathLike[str]
    """The path of a table that gets the rows that an expectation with ``drop`` leaves out, with
    the names of what they broke in ``_violations``; it is created if it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """`RecipeOptions`, checked."""

    create: bool = False
    partition_by: tuple[str, ...] = ()
    evolve_schema: bool = False
    set_transaction: SetTransaction | None = None
    expectations: Expectations = field(default_factory=dict)
    quarantine: str | None = None

    @classmethod
    def of(cls, options: RecipeOptions) -> TableSettings:
        """Read the options; errors as `set_transaction_of`."""
        version = options.get("txn_version")
        expectations = options.get("expectations") or {}
        RowCheck.of(expectations)
        quarantine = options.get("quarantine")
        return cls(
            create=bool(options.get("create", False)),
            partition_by=names_of(options.get("partition_by"), "partition_by"),
            evolve_schema=bool(options.get("evolve_schema", False)),
            set_transaction=set_transaction_of(
                options.get("txn_app_id"), None if version is None else str(version)
            ),
            expectations=expectations,
            quarantine=None if quarantine is None else os.fspath(quarantine),
        )


def refused(message: str, **details: object) -> InvalidRequestError:
    """Return the error for an argument that cannot be."""
    return InvalidRequestError(message, code=ErrorCode.INVALID_ARGUMENT, **details)


def require_options(function: str, given: Collection[str], known: type) -> None:
    """Refuse keyword arguments that a function does not have.

    Raises:
        TypeError: as Python does for an unknown argument.
    """
    for name in given:
        if name not in _names_of(known):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def _names_of(known: type) -> set[str]:
    return {
        name for kind in (known, *known.__mro__) for name in getattr(kind, "__annotations__", {})
    }


def names_of(given: Sequence[str] | str | None, argument: str) -> tuple[str, ...]:
    """Return names that may be given as one text, as a sequence, or not at all.

    Raises:
        InvalidRequestError: something else than text is among them, or a name stands twice.
    """
    if given is None:
        return ()
    names: tuple[object, ...] = (given,) if isinstance(given, str) else tuple(given)
    texts = tuple(name for name in names if isinstance(name, str) and name)
    if len(texts) < len(names):
        raise refused(f"{argument} must be names of columns, not {given!r}.", argument=argument)
    if twice := sorted({name for name in texts if texts.count(name) > 1}):
        raise refused(f"{argument} names {twice[0]!r} twice. Name each column once.", name=twice[0])
    return texts


def keys_of(given: Sequence[str] | str) -> tuple[str, ...]:
    """Return the key columns.

    Raises:
        InvalidRequestError: there is none.
    """
    keys = names_of(given, "keys")
    if not keys:
        raise refused("keys is empty. Name the columns by which rows of table and source match.")
    return keys


def choice_of(kind: type[Choice], given: str, argument: str) -> Choice:
    """Return one of several words as its value.

    Raises:
        InvalidRequestError: it is none of them.
    """
    try:
        return kind(given)
    except ValueError:
        words = ", ".join(repr(one.value) for one in kind)
        raise refused(f"{argument} is {given!r}. Use one of {words}.", argument=argument) from None


def condition_of(given: object, argument: str) -> str | Column | None:
    """Return a condition, text or Column.

    Raises:
        InvalidRequestError: it is something else.
    """
    if given is None or isinstance(given, str | Column):
        return given
    raise refused(f"{argument} must be SQL text or a Column, not {type(given).__name__}.")


def source_of(given: object) -> DataFrame:
    """Return the source; errors as `require_source`, and a stream is refused."""
    source = require_source(given)
    if source.isStreaming:
        raise refused(
            "The source is a stream. Call this for each of its batches, in "
            "writeStream.foreachBatch, with txn_app_id and txn_version=batch_id."
        )
    return source


def both_given(**given: object) -> None:
    """Refuse two arguments that exclude each other.

    Raises:
        InvalidRequestError: more than one of them is there.
    """
    present = [name for name, value in given.items() if value is not None]
    if len(present) > 1:
        raise refused(f"{' and '.join(present)} exclude each other. Give one of them.")


def options_of(options: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """Return the options with these names."""
    return {name: value for name, value in options.items() if name in names}
