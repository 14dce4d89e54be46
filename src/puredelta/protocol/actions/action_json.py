"""Actions as JSON: one line of a commit file, one row of a checkpoint (section "Actions").

The keys of every action are in `puredelta.protocol.actions.action_keys`. Unknown kinds of action
and unknown keys are skipped, as the protocol asks of every reader. ``commitInfo`` alone keeps
its unknown keys, because the history shows them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.action_keys import (
    ACTION_KEYS,
    COMMIT_INFO_KEYS,
    FORMAT_KEYS,
    METADATA_KEYS,
    Json,
    Key,
    encode_keys,
    parse_keys,
)
from puredelta.protocol.actions.actions import Action, CommitInfo, Metadata
from puredelta.protocol.schema.schema_json import parse_json

_SHOWN_LENGTH = 200

# Made once: json.dumps with an option makes an encoder for every call.
_as_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def parse_action(line: str | bytes | Json) -> Action | None:
    """Read one action, or ``None`` where its kind is unknown to this library.

    Takes the text of a line, or the object itself. The object may be a row of a checkpoint, in
    which the other kinds are null and maps may be lists of pairs (as Arrow returns them).

    Raises:
        CorruptTableError: not JSON, or a required key is missing or of the wrong type
            (DELTA_LOG_CORRUPTED).

    >>> parse_action('{"txn":{"appId":"stream-1","version":7}}')
    SetTransaction(app_id='stream-1', version=7, last_updated_ms=None)
    """
    content = _load(line) if isinstance(line, str | bytes) else line
    for kind, body in content.items():
        parse = _PARSERS.get(kind)
        if parse is None or body is None:
            continue
        try:
            return parse(body)
        except (ValueError, TypeError, AttributeError) as error:
            problem = str(error)[:_SHOWN_LENGTH]
            raise _corrupt(f"The log holds a broken {kind!r} action ({problem})", line) from error
    return None


def encode_action(action: Action) -> str:
    """Write one action as a line without its line break; absent values are left out.

    >>> from puredelta.protocol.actions.actions import SetTransaction
    >>> encode_action(SetTransaction(app_id="stream-1", version=7))
    '{"txn":{"appId":"stream-1","version":7}}'
    """
    kind, body = action_object(action)
    return _as_json({kind: body})


def action_object(action: Action) -> tuple[str, dict[str, Any]]:
    """Return the wire name of the action's kind and its JSON object."""
    match action:
        case Metadata():
            return "metaData", _encode_metadata(action)
        case CommitInfo():
            return "commitInfo", {**encode_keys(action, COMMIT_INFO_KEYS), **_unnamed(action)}
        case _:
            kind, keys = ACTION_KEYS[type(action)]
            return kind, encode_keys(action, keys)


def _parse_metadata(body: Json) -> Metadata:
    storage = parse_keys(body.get("format") or {}, FORMAT_KEYS)
    return Metadata(**parse_keys(body, METADATA_KEYS), **storage)


def _encode_metadata(metadata: Metadata) -> dict[str, Any]:
    storage = encode_keys(metadata, FORMAT_KEYS)
    body = {"id": metadata.id, "format": storage, **encode_keys(metadata, METADATA_KEYS)}
    if not metadata.schema_string:
        del body["schemaString"]
    return body


def _parse_commit_info(body: Json) -> CommitInfo:
    """Read provenance, which may be any JSON: values that do not fit are kept unchanged."""
    values: dict[str, Any] = {}
    extra = dict(body)
    for key in COMMIT_INFO_KEYS:
        value = extra.get(key.name)
        try:
            values[key.attribute] = key.otherwise if value is None else key.read(value)
        except (ValueError, TypeError):
            values[key.attribute] = key.otherwise
        else:
            extra.pop(key.name, None)
    return CommitInfo(**values, extra={k: v for k, v in extra.items() if v is not None})


def _unnamed(info: CommitInfo) -> dict[str, Any]:
    """Return the extra keys that no attribute of ``info`` replaces."""
    named = {key.name for key in COMMIT_INFO_KEYS if getattr(info, key.attribute) not in (None, {})}
    return {k: v for k, v in info.extra.items() if k not in named}


T = TypeVar("T", bound=Action)


def _by_table(kind: type[T], keys: tuple[Key, ...]) -> Callable[[Json], T]:
    return lambda body: kind(**parse_keys(body, keys))


_PARSERS: Mapping[str, Callable[[Json], Action]] = {
    **{name: _by_table(kind, keys) for kind, (name, keys) in ACTION_KEYS.items()},
    "metaData": _parse_metadata,
    "commitInfo": _parse_commit_info,
}


def _load(line: str | bytes) -> Json:
    try:
        content = parse_json(line)
    except ValueError as error:
        raise _corrupt(f"The log holds a line that is not JSON ({error})", line) from error
    if not isinstance(content, dict):
        raise _corrupt("The log holds a line that is not a JSON object", line)
    return content


def _corrupt(problem: str, line: object) -> CorruptTableError:
    shown = line.decode("utf-8", "replace") if isinstance(line, bytes) else str(line)
    if len(shown) > _SHOWN_LENGTH:
        shown = shown[:_SHOWN_LENGTH] + "..."
    return CorruptTableError(Message.LOG_CORRUPTED_LINE, problem=problem, line=shown)
