"""Changes of a log: of its bytes, of the JSON and Parquet in it, of names and of files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**40,
    1.0,
    0.5,
    1e308,
    "",
    "0",
    "-5",
    "9" * 25,
    "true",
    "NaN",
    "x" * 5000,
    "\x00",
    "\ud800",
    "e\u0301",
    "../../etc/passwd",
    "file:///etc/passwd",
    "s3://b/x",
    "%2e%2e/x",
    "%zz",
    "a//b/./c",
    "{}",
    "[",
    '{"numRecords":-1}',
    '{"numRecords":3,"minValues":{"id":"x"},"maxValues":{"id":[]},"nullCount":7}',
    '{"type":"struct","fields":[]}',
    '{"type":"struct","fields":[{"name":"p","type":"decimal(99,1)","nullable":true}]}',
    [],
    {},
    [[]],
    {"": None},
    [None],
    {"id": 2},
)
_NUMBER = re.compile(rb"-?[0-9]+")
_LOG = "_delta_log/"


def mutated(files: Files, random: Random) -> Files:
    """Return the log with one to three changes."""
    changed = dict(files)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choice(_MUTATIONS)(changed, random)
    return changed


# --- bytes -----------------------------------------------------------------------------------


def _any_file(files: Files, random: Random, ending: str = "") -> str | None:
    names = sorted(name for name in files if name.endswith(ending))
    return random.choice(names) if names else None


def _change_bytes(files: Files, random: Random) -> None:
    name = _any_file(files, random)
    if name is None or not files[name]:
        return
    content = bytearray(files[name])
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(content)) if content else 0
        match random.randrange(6):
            case 0 if content:
                content[at] ^= 1 << random.randrange(8)
            case 1 if content:
                content[at] = random.choice((0, 1, 127, 128, 255, 34, 92, 10, 123))
            case 2:
                del content[at:]
            case 3:
                end = min(len(content), at + random.randrange(200))
                content[at:at] = content[at:end] * random.choice((1, 2, 50))
            case 4:
                del content[at : at + random.randrange(40)]
            case _:
                other = files[random.choice(sorted(files))]
                content[at:at] = other[: random.randrange(300)]
    files[name] = bytes(content)


def _change_number(files: Files, random: Random) -> None:
    name = _any_file(files, random, ".json") or _any_file(files, random)
    numbers = list(_NUMBER.finditer(files[name])) if name else []
    if name and numbers:
        found = random.choice(numbers)
        new = str(random.choice((0, -1, 2**31, 2**63 - 1, 2**63, 10**30, "1e400", "NaN", "1.5")))
        files[name] = files[name][: found.start()] + new.encode() + files[name][found.end() :]


# --- JSON ------------------------------------------------------------------------------------


def _change_json(files: Files, random: Random) -> None:
    name = _any_file(files, random, ".json")
    if name is None:
        return
    lines = files[name].split(b"\n")
    index = random.randrange(len(lines))
    try:
        value = json.loads(lines[index])
    except (ValueError, RecursionError):
        return
    changed = _changed_value(value, random, random.randrange(1, 6))
    lines[index] = json.dumps(changed).encode()
    files[name] = b"\n".join(lines)


def _changed_value(value: Any, random: Random, depth: int) -> Any:
    """Change something at most ``depth`` levels down, also in JSON that is inside of a text."""
    if isinstance(value, dict) and value and depth:
        key = random.choice(sorted(value))
        match random.randrange(8):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, random.choice((key.upper(), key + "x", "", "id")): value[key]}
            case 2:
                return {**value, key: random.choice(HOSTILE)}
            case _:
                return {**value, key: _changed_value(value[key], random, depth - 1)}
    if isinstance(value, list) and value and depth:
        index = random.randrange(len(value))
        item = _changed_value(value[index], random, depth - 1)
        more = random.choice(([], [item], value))
        return [*value[:index], item, *more, *value[index + 1 :]]
    if isinstance(value, str) and value.startswith("{") and random.random() < 0.8:
        try:
            return json.dumps(_changed_value(json.loads(value), random, 6))
        except ValueError:
            return value[: random.randrange(len(value))]
    if random.random() < 0.1:
        nesting = random.choice((50, 99, 150, 500, 3000))
        return json.loads("[" * min(nesting, 500) + "]" * min(nesting, 500))
    return random.choice(HOSTILE)


def _change_lines(files: Files, random: Random) -> None:
    name = _any_file(files, random, ".json")
    if name is None:
        return
    lines = files[name].split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(5):
        case 0:
            lines[at], lines[other] = lines[other], lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            del lines[at]
        case 3:
            source = _any_file(files, random, ".json")
            lines.extend(files[source].split(b"\n") if source else [])
        case _:
            lines.insert(at, random.choice((b"", b" \t", b"null", b"{}", b"\xef\xbb\xbf{}", b"\r")))
    files[name] = b"\n".join(lines)


# --- Parquet ---------------------------------------------------------------------------------


def _change_parquet(files: Files, random: Random) -> None:
    """Write a checkpoint anew with columns, fields or values that are others."""
    name = _any_file(files, random, ".parquet")
    if name is None:
        return
    try:
        table = pq.read_table(io.BytesIO(files[name]))
        rows = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError):
        return
    for row in random.sample(rows, min(len(rows), random.choice((1, 1, 3)))):
        kinds = [kind for kind, body in row.items() if body is not None]
        if kinds:
            kind = random.choice(kinds)
            row[kind] = _changed_value(row[kind], random, random.choice((0, 1, 2, 3)))
    columns = []
    for field in table.schema:
        values = [row[field.name] for row in rows]
        try:
            columns.append(pa.array(values, field.type))
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            columns.append(_array_of_any_type(values))
    names = [
        random.choice(table.schema.names) if random.random() < 0.02 else n
        for n in table.schema.names
    ]
    kept = [n for n in range(len(columns)) if random.random() > 0.02]
    sink = io.BytesIO()
    try:
        changed = pa.Table.from_arrays([columns[n] for n in kept], [names[n] for n in kept])
        pq.write_table(changed, sink)
    except (pa.ArrowException, ValueError):
        return
    files[name] = sink.getvalue()


def _array_of_any_type(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.nulls(len(values))


# --- files -----------------------------------------------------------------------------------


def _change_files(files: Files, random: Random) -> None:
    name = random.choice(sorted(files))
    match random.randrange(6):
        case 0:
            del files[name]
        case 1:
            files[name] = b""
        case 2:
            files[name] = files[random.choice(sorted(files))]
        case 3:
            files[_other_name(random)] = files[name]
        case 4:
            files[_other_name(random)] = files.pop(name)
        case _:
            hint = random.choice(HOSTILE)
            files[f"{_LOG}_last_checkpoint"] = json.dumps(
                random.choice(({"version": hint}, {"version": 3, "checksum": hint}, hint))
            ).encode()


def _other_name(random: Random) -> str:
    version = random.choice((0, 1, 3, 5, 6, 7, 2**63 - 1, 10**19))
    high = random.choice((1, 5, 6, 2**63 - 1))
    part, parts = random.choice(((1, 1), (1, 2), (2, 2), (0, 1), (9, 10**9)))
    ending = random.choice(
        (
            "json",
            "crc",
            "checkpoint.parquet",
            f"{high:020d}.compacted.json",
            f"checkpoint.{part:010d}.{parts:010d}.parquet",
            "checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
            "checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet",
            "txt",
        )
    )
    return f"{_LOG}{version:020d}.{ending}"


_MUTATIONS: tuple[Callable[[Files, Random], None], ...] = (
    _change_bytes,
    _change_bytes,
    _change_number,
    _change_json,
    _change_json,
    _change_json,
    _change_lines,
    _change_parquet,
    _change_parquet,
    _change_files,
)
