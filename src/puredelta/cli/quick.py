"""Reading a command line that is right, in no time; any other one is typer's to explain.

Importing typer, and pydantic with it, takes as long as reading a log. So a command line is first
read here, by the same declarations. Whatever is not plain (help, a wrong or missing value, short
options in one word) is left to typer, which says what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from puredelta.cli.declared import COMMANDS, DeclaredCommand, DeclaredParameter

_WHOLE = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A command and the values of all its parameters."""

    command: DeclaredCommand
    values: dict[str, object]


class _NotPlainError(Exception):
    """A command line is left to typer."""


def read_quickly(arguments: Sequence[str]) -> CommandLine | None:
    """Read a command line; None where it is not plain.

    >>> asked = read_quickly(["history", "/t", "-n", "3"])
    >>> asked.command.name, asked.values
    ('history', {'table': '/t', 'limit': 3})
    >>> read_quickly(["history"]), read_quickly(["history", "/t", "-n", "0"])
    (None, None)
    """
    commands = {command.name: command for command in COMMANDS}
    if not arguments or arguments[0] not in commands:
        return None
    command = commands[arguments[0]]
    try:
        return CommandLine(command=command, values=_values(command, list(arguments[1:])))
    except _NotPlainError:
        return None


def _values(command: DeclaredCommand, words: list[str]) -> dict[str, object]:
    places = [p for p in command.parameters if not p.flags]
    options = {flag: p for p in command.parameters for flag in p.flags}
    found: dict[str, object] = {p.name: p.default for p in command.parameters}
    given = 0
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        if not word.startswith("-"):
            if given == len(places):
                raise _NotPlainError
            found[places[given].name] = _value(places[given], word)
            given += 1
        elif word in (switches := _switches(command)):
            name, value_of_switch = switches[word]
            found[name] = value_of_switch
        elif flag in options and flag.startswith("--") and equals:
            found[options[flag].name] = _value(options[flag], value)
        elif word in options and words:
            found[options[word].name] = _value(options[word], words.pop(0))
        else:
            raise _NotPlainError
    if any(place.is_required for place in places[given:]):
        raise _NotPlainError
    return found


def _switches(command: DeclaredCommand) -> dict[str, tuple[str, bool]]:
    """Return the words that mean true or false, with the parameter that they set."""
    words = {}
    for parameter in command.parameters:
        if parameter.kind is bool:
            on, _, off = parameter.flags[0].partition("/")
            words[on] = (parameter.name, True)
            if off:
                words[off] = (parameter.name, False)
    return words


def _value(parameter: DeclaredParameter, text: str) -> object:
    if not text or text.startswith("-"):
        raise _NotPlainError
    value: object = text
    if parameter.kind is int and _WHOLE.fullmatch(text):
        value = int(text)
        if parameter.minimum is not None and int(text) < parameter.minimum:
            raise _NotPlainError
    elif parameter.kind is float and _NUMBER.fullmatch(text):
        value = float(text)
    elif parameter.kind is Path:
        value = Path(text)
    elif parameter.kind is not str:
        raise _NotPlainError
    return value
