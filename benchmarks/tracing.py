"""Where the time of a puredelta command goes: functions that are its phases, timed.

The functions are replaced while a command is traced; nothing of the library knows of it. A
phase that runs inside another is a part of it, also if it runs in another thread meanwhile.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_DML = "puredelta.commands.dml"
_CONVERT = "puredelta.commands.convert.plan"

PHASES: tuple[tuple[str, str], ...] = (
    ("open", "puredelta.tables:DeltaTable.forPath"),
    ("columns of the table", "puredelta.tables.open_table:table_identity"),
    ("execute", "puredelta.commands.dml.execute:run_merge"),
    ("log", "puredelta.log.replay.table_log:TableLog.snapshot"),
    ("resolve", f"{_DML}.pipeline:resolve"),
    ("stage the source", f"{_DML}.pipeline:stage_source"),
    ("staging job", f"{_DML}.source:stage_rows"),
    ("prune", f"{_DML}.pipeline:prune"),
    ("search", f"{_DML}.pipeline:search"),
    ("look keys up", f"{_DML}.search:look_up_keys"),
    ("join", f"{_DML}.search:collect_words"),
    ("decide", f"{_DML}.pipeline:decide"),
    ("write", f"{_DML}.pipeline:write"),
    ("copies and new rows", f"{_DML}.write:write_both"),
    ("rewrite files", f"{_DML}.write:rewrite_files"),
    ("deletion vectors", f"{_DML}.write:write_vectors"),
    ("frame of new rows", f"{_DML}.new_rows:frame_of_new_rows"),
    ("write new rows", f"{_DML}.write:write_rows"),
    ("writing job", "puredelta.spark.write.writer:run_parquet_job"),
    ("verify", f"{_DML}.pipeline:verify"),
    ("commit", "puredelta.log.commit.transaction:Transaction.commit"),
    ("checkpoint", "puredelta.commands.finish:write_due_checkpoint"),
    ("remove the staged source", f"{_DML}.staged_source:StagedSource.remove"),
    ("refresh cached frames", "puredelta.commands.finish:refresh_cached_frames"),
    ("convert", "puredelta.commands.convert.convert_to_delta:convert_to_delta"),
    ("list files", f"{_CONVERT}:list_data_files"),
    ("partition values", f"{_CONVERT}:read_partitions"),
    ("footers", f"{_CONVERT}:read_files"),
)
"""A phase's name, and the function, as module and attribute, where it is looked up."""

Wrap: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_SEND = "py4j.java_gateway:GatewayClient.send_command"
_START = "threading:Thread.start"


@dataclass(slots=True)
class Span:
    """One call of a phase. Times are seconds since the epoch."""

    path: tuple[str, ...]
    """Its name after those of the phases it is a part of."""
    begun: float
    ended: float = 0.0
    calls: int = 0
    """Through Py4J, by its own thread."""
    python_seconds: float = 0.0
    """Processor time of its own thread."""
    beside: bool = False
    """Whether it ran in another thread than the phase it is a part of."""


Stack: TypeAlias = list[Span]


@dataclass(slots=True)
class Tracer:
    """Records the phases of one command."""

    spans: list[Span] = field(default_factory=list)
    _stacks: dict[threading.Thread, Stack] = field(default_factory=dict)
    """The phases that run now, by thread, each a part of the one before."""
    _starters: dict[threading.Thread, Span] = field(default_factory=dict)
    """The phases that started threads."""

    def run(self, command: Callable[[], object]) -> None:
        """Run a command with its phases timed."""
        with self._patched(), self._span("command"):
            command()

    @contextmanager
    def _span(self, name: str) -> Iterator[None]:
        stack = self._stack()
        starter = self._starters.get(threading.current_thread())
        above = stack[-1] if stack else starter
        path = (*(above.path if above else ()), name)
        beside = not stack and starter is not None
        span = Span(path=path, begun=time.time(), beside=beside)
        python = time.thread_time()
        self.spans.append(span)
        stack.append(span)
        try:
            yield
        finally:
            stack.pop()
            span.ended = time.time()
            span.python_seconds = time.thread_time() - python

    def _stack(self) -> Stack:
        return self._stacks.setdefault(threading.current_thread(), [])

    @contextmanager
    def _patched(self) -> Iterator[None]:
        originals = []
        try:
            for name, where in PHASES:
                originals.append(replaced(where, functools.partial(self._timed, name)))
            originals.append(replaced(_SEND, self._counted))
            originals.append(replaced(_START, self._remembered))
            yield
        finally:
            for restore in reversed(originals):
                restore()

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self._span(name):
                return function(*args, **kwargs)

        return timed

    def _counted(self, send: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(send)
        def counted(*args: Any, **kwargs: Any) -> Any:
            for span in self._stack():
                span.calls += 1
            return send(*args, **kwargs)

        return counted

    def _remembered(self, start: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(start)
        def remembered(thread: threading.Thread) -> None:
            if stack := self._stack():
                self._starters[thread] = stack[-1]
            start(thread)

        return remembered


def replaced(
    where: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[], None]:
    """Wrap a function where it is looked up; return what undoes that.

    Raises:
        AttributeError, ImportError: it is not there.
    """
    module, _, attributes = where.partition(":")
    owner: Any = importlib.import_module(module)
    *owners, name = attributes.split(".")
    for attribute in owners:
        owner = getattr(owner, attribute)
    found = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
    wrapped: Any = (
        classmethod(wrap(found.__func__)) if isinstance(found, classmethod) else wrap(found)
    )
    setattr(owner, name, wrapped)
    return functools.partial(setattr, owner, name, found)
