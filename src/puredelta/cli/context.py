"""The options that every command has, wherever they stand on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from puredelta.cli.output import Output
from puredelta.errors import ErrorCode, InvalidRequestError

_SWITCHES = frozenset({"--json", "--verbose"})
_WITH_VALUE = frozenset({"--conf", "--master", "--remote", "--storage-option"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a command needs beside its own arguments."""

    output: Output
    verbose: bool = False
    """Whether Spark's own messages and tracebacks are shown."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of the Spark session."""
    master: str | None = None
    remote: str | None = None
    """A Spark Connect server, ``sc://host``."""
    storage_options: Mapping[str, str] = field(default_factory=dict)


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Read ``KEY=VALUE`` texts.

    >>> pairs(["a=1", "b=x=y"], "--conf")
    {'a': '1', 'b': 'x=y'}

    Raises:
        InvalidRequestError: one has no ``=``.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise _usage(f"{option} {text!r} is no KEY=VALUE. Write {option} key=value.", option)
        found[key.strip()] = value
    return found


def read_context(arguments: Sequence[str]) -> tuple[Context, list[str]]:
    """Take the options that every command has out of the arguments, wherever they stand.

    What follows ``--`` stays.

    >>> context, rest = read_context(["history", "/t", "--json", "--conf=a=b", "--limit", "3"])
    >>> context.output.as_json, context.conf, rest
    (True, {'a': 'b'}, ['history', '/t', '--limit', '3'])

    Raises:
        InvalidRequestError: an option lacks its value, or is given twice where one counts.
    """
    given = list(arguments)
    rest: list[str] = []
    switches: set[str] = set()
    values: dict[str, list[str]] = {name: [] for name in _WITH_VALUE}
    while given:
        argument = given.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "--":
            rest += [argument, *given]
            break
        if argument in _SWITCHES:
            switches.add(argument)
        elif name in _WITH_VALUE:
            if not equals and not given:
                raise _usage(f"{name} needs a value.", name)
            values[name].append(value if equals else given.pop(0))
        else:
            rest.append(argument)
    context = Context(
        output=Output(as_json="--json" in switches),
        verbose="--verbose" in switches,
        conf=pairs(values["--conf"], "--conf"),
        master=_single(values["--master"], "--master"),
        remote=_single(values["--remote"], "--remote"),
        storage_options=pairs(values["--storage-option"], "--storage-option"),
    )
    return context, rest


def _single(values: Sequence[str], option: str) -> str | None:
    if len(values) > 1:
        raise _usage(f"{option} is given {len(values)} times; once is enough.", option)
    return values[0] if values else None


def _usage(message: str, option: str) -> InvalidRequestError:
    return InvalidRequestError(message, code=ErrorCode.INVALID_WRITE_OPTION, option=option)
