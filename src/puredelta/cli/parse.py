"""The parser of the command line: click, with commands that are imported by name when they run."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from puredelta.cli.output import ExitCode, Output
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.version import __version__

LOG = "puredelta.cli.log_commands"
"""Commands that read the log alone."""
DOCTOR = "puredelta.cli.doctor"
"""The module of the command that reads the environment, too."""
SPARK = "puredelta.cli.spark_commands"
"""Commands that start a Spark session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The options shared by all commands."""

    output: Output
    verbose: bool = False
    """Whether Spark's own messages and tracebacks are shown."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of the Spark session."""
    master: str | None = None
    remote: str | None = None
    """A Spark Connect server, ``sc://host``."""
    storage_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A parsed command line: a function, and the values of its arguments."""

    name: str
    """The command's name, which is that of its function."""
    module: str
    context: Context
    values: Mapping[str, object]

    @property
    def starts_spark(self) -> bool:
        """Whether the command starts a session."""
        return self.module == SPARK


def _repeatable(flag: str, metavar: str, text: str) -> click.Option:
    return click.Option([flag], multiple=True, metavar=metavar, help=text)


_OF_EVERY_COMMAND = (
    click.Option(["as_json", "--json"], is_flag=True, help="One JSON document on stdout."),
    click.Option(["--verbose"], is_flag=True, help="Spark's messages and tracebacks."),
    _repeatable("--storage-option", "KEY=VALUE", "How storage is reached."),
)
_OF_SPARK = (
    _repeatable("--conf", "KEY=VALUE", "A setting of the Spark session."),
    _repeatable("--master", "URL", "Where Spark runs, such as local[4]."),
    _repeatable("--remote", "URL", "A Spark Connect server: sc://HOST."),
)
COMMON = (*_OF_EVERY_COMMAND, *_OF_SPARK)
"""Options allowed before a command and after it."""


class DeclaredArgument(click.Argument):
    """An argument with a line of help."""

    def __init__(self, name: str, text: str, **settings: Any) -> None:
        super().__init__([name], **settings)
        self.text = text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the name and the text for the help of the command."""
        del ctx
        return (self.name or "").upper(), self.text


class DeclaredCommand(click.Command):
    """A command; its invocation returns an `Invocation` of the function of its name."""

    def __init__(
        self,
        name: str,
        module: str,
        text: str,
        parameters: Sequence[click.Parameter],
        *,
        spark_switch: str | None = None,
    ) -> None:
        super().__init__(name, help=text, params=[*parameters, *COMMON])
        self.module = module
        self.spark_switch = spark_switch
        """The switch that runs the function of the same name in `SPARK`."""

    def invoke(self, ctx: click.Context) -> Invocation:
        """Return the function and values to run."""
        common = {parameter.name for parameter in COMMON}
        values = {name: value for name, value in ctx.params.items() if name not in common}
        switched = self.spark_switch is not None and values.pop(self.spark_switch)
        return Invocation(
            name=str(self.name),
            module=SPARK if switched else self.module,
            context=read_context(ctx),
            values=values,
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, the options, and those shared by all commands."""
        own = [p for p in self.get_params(ctx) if p not in COMMON]
        takes_spark = self.module == SPARK or self.spark_switch is not None
        sections: tuple[tuple[str, Sequence[click.Parameter]], ...] = (
            ("Arguments", [p for p in own if isinstance(p, click.Argument)]),
            ("Options", [p for p in own if isinstance(p, click.Option)]),
            ("Options of every command", _OF_EVERY_COMMAND),
            ("Options of commands with Spark", _OF_SPARK if takes_spark else ()),
        )
        for title, parameters in sections:
            records = [record for p in parameters if (record := p.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class CommandLine(click.Group):
    """All commands, in sections of those with and without Spark."""

    def __init__(self, commands: Sequence[DeclaredCommand], *, text: str, epilog: str) -> None:
        version = click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print it.",
        )
        super().__init__(
            "puredelta",
            commands=list(commands),
            params=[version, *COMMON],
            help=text,
            epilog=epilog,
            context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of their declarations."""
        del ctx
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words before the command; without any, print the help."""
        if not args and not ctx.resilient_parsing:
            click.echo(self.get_help(ctx))
            ctx.exit(ExitCode.USAGE)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a misspelled one, suggest similar names."""
        name = args[0]
        if not (name in self.commands or name.startswith("-") or ctx.resilient_parsing):
            similar = ", ".join(map(repr, difflib.get_close_matches(name, self.commands)))
            meant = f" Did you mean {similar}?" if similar else ""
            raise click.UsageError(f"No such command {name!r}.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the two sections of commands."""
        del ctx
        for title, with_spark in (("Without Spark", False), ("With Spark", True)):
            rows = [
                (name, command.help or "")
                for name, command in self.commands.items()
                if isinstance(command, DeclaredCommand) and (command.module == SPARK) is with_spark
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


def read_context(ctx: click.Context) -> Context:
    """Return the options shared by all commands, those before the command and those after it.

    Raises:
        InvalidRequestError: a text is no ``KEY=VALUE``, or an option is repeated where one
            counts.
    """
    levels = [level.params for level in (ctx.parent, ctx) if level is not None]

    def texts(name: str) -> Iterator[str]:
        return (text for level in levels for text in level[name])

    return Context(
        output=Output(as_json=any(level["as_json"] for level in levels)),
        verbose=any(level["verbose"] for level in levels),
        conf=pairs(list(texts("conf")), "--conf"),
        master=_single(list(texts("master")), "--master"),
        remote=_single(list(texts("remote")), "--remote"),
        storage_options=pairs(list(texts("storage_option")), "--storage-option"),
    )


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


def _single(values: Sequence[str], option: str) -> str | None:
    if len(values) > 1:
        raise _usage(f"{option} is given {len(values)} times; once is enough.", option)
    return values[0] if values else None


def _usage(message: str, option: str) -> InvalidRequestError:
    return InvalidRequestError(message, code=ErrorCode.INVALID_WRITE_OPTION, option=option)


def _print_version(
    ctx: click.Context,
    _parameter: click.Parameter,
    wanted: bool,  # noqa: FBT001 - click's signature
) -> None:
    if wanted and not ctx.resilient_parsing:
        sys.stdout.write(f"puredelta {__version__}\n")
        ctx.exit()
