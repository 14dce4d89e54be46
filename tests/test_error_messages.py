"""The table of messages: every row is used, every call gives what its text needs."""

from __future__ import annotations

import ast
import pickle
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import puredelta
from puredelta import errors
from puredelta.errors import CorruptTableError, DeltaError, ErrorCode, InvalidRequestError, Message

SOURCE = Path(puredelta.__file__).parent
CLASSES = frozenset(
    name
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type) and issubclass(kind, DeltaError)
)
PLAIN_TEXTS = {
    "cli": 1,
    "commands": 1,
    "log/replay": 1,
    "recipes": 1,
    "spark/values": 2,
}
"""Raises with a text of their own, by room: texts of another error that are passed on with a
prefix (RESTORE, a line of a commit) or as Spark gives them (a row's error), and the two functions
that name a wrong argument. Every other room has none."""


@cache
def calls() -> tuple[tuple[str, ast.Call], ...]:
    """Return the calls that make an error, each with its room."""
    return tuple(
        (room_of(path), node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CLASSES
        and node.args
    )


def room_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def rows_of(call: ast.Call) -> Iterator[str]:
    """Yield the names of the rows that a call passes: one, or one of two."""
    for node in ast.walk(call.args[0]):
        match node:
            case ast.Attribute(value=ast.Name(id="Message"), attr=name):
                yield name


def test_every_row_is_used() -> None:
    used = {name for _, call in calls() for name in rows_of(call)}
    others = "".join(p.read_text(encoding="utf-8") for p in SOURCE.rglob("*.py"))
    unused = [m.name for m in Message if m.name not in used and f"Message.{m.name}" not in others]
    assert unused == []
    assert used <= set(Message.__members__)


def test_every_call_gives_the_parameters_of_its_text() -> None:
    missing = [
        f"{room}: {name} needs {sorted(lacking)}"
        for room, call in calls()
        for name in rows_of(call)
        if None not in (given := {keyword.arg for keyword in call.keywords})
        and (lacking := Message[name].parameters - given)
    ]
    assert missing == []


@pytest.mark.parametrize("message", Message, ids=lambda message: message.name)
def test_every_parameter_is_filled(message: Message) -> None:
    specs = {name: spec for _, name, spec, _ in Formatter().parse(message.template) if name}
    values: dict[str, object] = {n: 7 if s else f"<{n}>" for n, s in specs.items()}
    text = message.text(values)
    assert all(f"<{name}>" in text for name, spec in specs.items() if not spec)
    assert "{" not in text.replace("{{", "") or "{{" in message.template
    error = DeltaError(message, **values)
    assert (error.message, error.code, error.details) == (text, message.code, values)
    assert "" not in message.parameters
    assert not any(name.isdecimal() for name in message.parameters)


@pytest.mark.parametrize("message", Message, ids=lambda message: message.name)
def test_a_row_has_the_name_of_its_code(message: Message) -> None:
    assert message.name == message.code.name or message.name.startswith(f"{message.code.name}_")


def test_other_texts_are_exceptions() -> None:
    plain = Counter(
        room
        for room, call in calls()
        if not list(rows_of(call)) and any(keyword.arg == "code" for keyword in call.keywords)
    )
    assert dict(plain) == PLAIN_TEXTS


def test_an_error_is_made_of_a_row_or_of_a_text_with_a_code() -> None:
    made = InvalidRequestError(Message.INVALID_CDC_RANGE, start=ValueError("five"), end=3)
    assert made.code is ErrorCode.INVALID_CDC_RANGE
    assert made.getMessageParameters() == {"start": "five", "end": "3"}
    again = pickle.loads(pickle.dumps(made))
    assert (str(again), again.code, again.details) == (str(made), made.code, made.details)
    plain = InvalidRequestError(made.message, code=made.code, **made.details)
    assert str(plain) == str(made)
    with pytest.raises(TypeError, match="needs a code"):
        InvalidRequestError("no code")


def test_a_quotation_is_shortened() -> None:
    long = CorruptTableError(Message.LOG_CORRUPTED_LINE, problem="p" * 9_000, line="l" * 9_000)
    assert len(long.message) < 4_100
    assert " ... " in long.message
