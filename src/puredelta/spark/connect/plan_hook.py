"""The hook that sees each plan of a Connect session right before it is sent.

Whatever a client does with a plan goes through two methods of its gRPC stub: ``ExecutePlan`` and
``AnalyzePlan``. PySpark may send a request again: each time the hook makes a new request of the
one it is given, which stays as it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from pyspark.sql import SparkSession

from puredelta.protocol.schema.sql_lexer import Token, TokenKind, keywords, tokenize
from puredelta.spark.connect.messages import Message, client_of, copy_of, parts_of

_PLAN = "spark.connect.Plan"
_HOOKED = ("ExecutePlan", "AnalyzePlan")
_MARK = "_puredelta_planner"
_SENT = "_puredelta_plans_sent"
_ZSTD_BYTES_MAX = 1 << 31


class Use(Enum):
    """The purpose for which a plan is sent."""

    ROWS = "rows"
    """Its rows are computed."""
    FILES = "files"
    """It is asked how its rows would be computed, or which files they come from."""
    BOUND = "bound"
    """Its rows become a frame, whose plans may name columns that it does not show: a text."""
    COLUMNS = "columns"
    """Nothing but its columns is asked for."""
    MEANING = "meaning"
    """It is compared with other plans."""
    WHOLE = "whole"
    """Later plans may see less of it than it shows: a view."""
    CACHED = "cached"
    """Its rows are kept, and later plans with it are answered from them."""
    UNCACHED = "uncached"
    """Its rows are no longer kept."""


_USES = {
    "explain": Use.FILES,
    "input_files": Use.FILES,
    "persist": Use.CACHED,
    "unpersist": Use.UNCACHED,
    "get_storage_level": Use.WHOLE,
    "same_semantics": Use.MEANING,
    "semantic_hash": Use.MEANING,
}
"""The uses of an ``AnalyzePlan`` request by its kind; any other one is about columns."""
_USES_OF_COMMANDS = {"create_dataframe_view": Use.WHOLE, "sql_command": Use.BOUND}

Planner = Callable[[Message, Use], None]
"""Changes a plan or a relation in place, before it is sent for a use."""


def watch_plans(spark: SparkSession, mark: bytes, planner: Planner) -> None:
    """Let a planner change every plan of a session in which the bytes of ``mark`` are.

    A second call for the same session changes nothing.
    """
    stub = client_of(spark)._stub  # noqa: SLF001 - there is no public way
    if hasattr(stub, _MARK):
        return
    setattr(stub, _MARK, planner)
    for name in _HOOKED:
        setattr(stub, name, _planned(getattr(stub, name), mark, planner))


def watch_changes(spark: SparkSession, changed: Callable[[], None]) -> None:
    """Call a function before anything is sent that may change what names mean in a session.

    These are all commands but questions (SHOW, DESCRIBE, EXPLAIN) and plain queries.
    """
    stub = client_of(spark)._stub  # noqa: SLF001 - there is no public way
    send = stub.ExecutePlan

    def call(request: Message, *args: Any, **kwargs: Any) -> Any:
        if may_change_names(_inflated(request).plan):
            changed()
        return send(request, *args, **kwargs)

    stub.ExecutePlan = call


def plans_sent(spark: SparkSession) -> int:
    """Return how many plans a session has sent since this was asked for the first time."""
    stub = client_of(spark)._stub  # noqa: SLF001 - there is no public way
    sent: list[int] | None = getattr(stub, _SENT, None)
    if sent is None:
        sent = [0]
        setattr(stub, _SENT, sent)
        for name in _HOOKED:
            setattr(stub, name, _counted(getattr(stub, name), sent))
    return sent[0]


def _counted(send: Callable[..., Any], sent: list[int]) -> Callable[..., Any]:
    def call(request: Message, *args: Any, **kwargs: Any) -> Any:
        sent[0] += 1
        return send(request, *args, **kwargs)

    return call


def watch_settings(spark: SparkSession, changed: Callable[[], None]) -> None:
    """Call a function before, and where that is known after, anything is sent that may change a
    setting of a session: SQL commands, and requests that make or remove settings.
    """
    stub = client_of(spark)._stub  # noqa: SLF001 - there is no public way
    execute, configure = stub.ExecutePlan, stub.Config

    def call(request: Message, *args: Any, **kwargs: Any) -> Any:
        if may_change_settings(_inflated(request).plan):
            changed()
        return execute(request, *args, **kwargs)

    def config(request: Message, *args: Any, **kwargs: Any) -> Any:
        if request.operation.WhichOneof("op_type") not in {"set", "unset"}:
            return configure(request, *args, **kwargs)
        changed()
        try:
            return configure(request, *args, **kwargs)
        finally:
            changed()

    stub.ExecutePlan, stub.Config = call, config


def may_change_settings(plan: Message) -> bool:
    """Return whether a plan is a command that may change a setting."""
    is_command = plan.WhichOneof("op_type") == "command"
    kind = plan.command.WhichOneof("command_type") if is_command else None
    return kind in {"sql_command", "extension"} and may_change_names(plan)


def may_change_names(plan: Message) -> bool:
    """Return whether a plan is a command that may change the catalog, a view or a setting."""
    if plan.WhichOneof("op_type") != "command":
        return bool(plan.root.WhichOneof("rel_type") == "catalog")
    if plan.command.WhichOneof("command_type") != "sql_command":
        return True
    command = plan.command.sql_command
    root = command.input
    if root.WhichOneof("rel_type") == "with_relations":
        root = root.with_relations.root
    text = root.sql.query if root.WhichOneof("rel_type") == "sql" else command.sql
    tokens = tokenize(text)
    is_question = bool(tokens) and tokens[0].text.upper() in _QUESTIONS
    return not is_question and not is_query(text)


def is_query(text: str) -> bool:
    """Return whether a text surely changes nothing.

    >>> is_query("WITH t AS (SELECT 1) SELECT * FROM t"), is_query("FROM t INSERT INTO u SELECT 1")
    (True, False)
    >>> is_query("SELECT t.set, now() AS update FROM t")
    True
    """
    tokens = tokenize(text)
    if not tokens or tokens[0].text.upper() not in _QUERIES:
        return False
    return tokens[0].text.upper() in _ONLY_QUERIES or _goes_on_as_query(tokens)


def _goes_on_as_query(tokens: Sequence[Token]) -> bool:
    """Return whether a query follows common table expressions, or FROM: the first word decides."""
    depth, has_from = 0, False
    for token in tokens:
        depth += token.means("(") - token.means(")")
        if depth or token.kind is not TokenKind.WORD:
            continue
        word = token.text.upper()
        if word in _COMMANDS:
            return False
        if word in _SELECTS or (word in _ONLY_QUERIES and not has_from):
            return True
        has_from = has_from or word == "FROM"
    return True


_ONLY_QUERIES = keywords("SELECT VALUES TABLE (")
_SELECTS = keywords("SELECT MAP REDUCE")
_QUERIES = _ONLY_QUERIES | keywords("WITH FROM")
_QUESTIONS = keywords("SHOW DESCRIBE DESC EXPLAIN")
_COMMANDS = keywords("INSERT UPDATE DELETE MERGE")


def _planned(send: Callable[..., Any], mark: bytes, planner: Planner) -> Callable[..., Any]:
    def call(request: Message, *args: Any, **kwargs: Any) -> Any:
        return send(planned_request(request, mark, planner), *args, **kwargs)

    return call


def planned_request(request: Message, mark: bytes, planner: Planner) -> Message:
    """Return a request as it is sent: the same one, or another with changed plans."""
    sent = _inflated(request)
    if mark not in sent.SerializeToString():
        return request
    sent = copy_of(request) if sent is request else sent
    use = _use_of(sent)
    for plan in _plans(sent):
        planner(plan, use)
    return sent


def _plans(message: Message) -> list[Message]:
    """Return the plans and, where a request has bare relations, these."""
    found: list[Message] = []
    for part in parts_of(message):
        kind = part.DESCRIPTOR.full_name
        found += [part] if kind in {_PLAN, "spark.connect.Relation"} else _plans(part)
    return found


def _use_of(request: Message) -> Use:
    if "analyze" in {field.name for field in request.DESCRIPTOR.oneofs}:
        return _USES.get(request.WhichOneof("analyze"), Use.COLUMNS)
    if request.plan.WhichOneof("op_type") != "command":
        return Use.ROWS
    return _USES_OF_COMMANDS.get(request.plan.command.WhichOneof("command_type"), Use.ROWS)


def _inflated(request: Message) -> Message:
    """Return a request whose plans are not compressed, the same one if none is."""
    packed = [plan for plan in _plans(request) if _is_compressed(plan)]
    if not packed:
        return request
    request = copy_of(request)
    zstd: Any = importlib.import_module("zstandard")  # the client has compressed by it
    for plan in _plans(request):
        if not _is_compressed(plan):
            continue
        operation = copy_of(plan.compressed_operation)
        data = zstd.ZstdDecompressor().decompress(operation.data, max_output_size=_ZSTD_BYTES_MAX)
        is_root = operation.op_type == type(operation).OP_TYPE_RELATION
        (plan.root if is_root else plan.command).ParseFromString(data)
    return request


def _is_compressed(plan: Message) -> bool:
    if plan.DESCRIPTOR.full_name != _PLAN:
        return False
    return bool(plan.WhichOneof("op_type") == "compressed_operation")
