"""Small inputs that ask for much memory: ``python -m tests.fuzz.bombs NAME`` reads one."""

from __future__ import annotations

import gc
import json
import resource
import struct
import sys
import zlib
from collections.abc import Callable, Mapping

from puredelta.errors import DeltaError
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import PORTABLE_MAGIC, decode_block
from tests.fuzz.logs import valid_log
from tests.fuzz.outcome import outcome

_MIB = 1 << 20
ALLOWANCE = 64 * _MIB
FACTOR = 10
_COMMIT = "_delta_log/00000000000000000006.json"


def _line(content: bytes) -> Callable[[], dict[str, bytes]]:
    return lambda: {**valid_log("commits"), _COMMIT: content}


_FILES: Mapping[str, Callable[[], dict[str, bytes]]] = {
    "nested array": _line(b"[" * 4 * _MIB),
    "nested object": _line(b'{"add":' * _MIB),
    "nested schema": _line(
        json.dumps({"metaData": {"id": "x", "schemaString": '{"type":' * _MIB}}).encode()
    ),
    "long number": _line(b'{"txn":{"appId":"a","version":' + b"9" * 4 * _MIB + b"}}"),
    "large exponent": _line(b'{"txn":{"appId":"a","version":1e999999999}}'),
    "decimal of a billion digits": _line(
        json.dumps(
            {
                "add": {
                    "path": "x",
                    "partitionValues": {},
                    "size": 1,
                    "modificationTime": 1,
                    "dataChange": True,
                    "stats": '{"numRecords":1,"minValues":{"d":1e999999999,"id":1e999999999}}',
                }
            }
        ).encode()
    ),
    "decimal type": _line(
        b'{"metaData":{"id":"x","schemaString":"{\\"type\\":\\"struct\\",\\"fields\\":[{\\"name\\":'
        b'\\"p\\",\\"type\\":\\"decimal(999999999,1)\\",\\"nullable\\":true}]}"}}'
    ),
    "many lines": _line(b"{}\n" * 50_000),
    "hint": lambda: {
        **valid_log("classic"),
        "_delta_log/_last_checkpoint": b'{"version":3,"x":' + b"[" * 4 * _MIB,
    },
}


def _vector() -> int:
    """21 KB of runs are 98 million rows, and the log says three."""
    count = 1500
    runs = b"".join(struct.pack("<HHH", 1, 0, 65535) for _ in range(count))
    keys = b"".join(struct.pack("<HH", n, 65535) for n in range(count))
    head = struct.pack("<I", 12347 | ((count - 1) << 16)) + b"\xff" * ((count + 7) // 8)
    begin = len(head) + len(keys) + 4 * count
    offsets = b"".join(struct.pack("<I", begin + 6 * n) for n in range(count))
    data = PORTABLE_MAGIC.to_bytes(4, "little") + struct.pack("<QI", 1, 0)
    data += head + keys + offsets + runs
    block = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline="x" * 20, offset=1, size_bytes=len(data), cardinality=3
    )
    try:
        decode_block(block, vector)
    except DeltaError:
        return len(block)
    raise AssertionError("a vector of other rows than the log says was read")


BOMBS = ("vector", *_FILES)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(name: str) -> int:
    """Return 1 if reading took more than `FACTOR` times the input and `ALLOWANCE`."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    outcome(valid_log("classic"))  # what the modules and threads take by themselves
    content = None if name == "vector" else _FILES[name]()
    gc.collect()
    before = _peak_bytes()
    if content is None:
        size = _vector()
    else:
        outcome(content)
        size = sum(map(len, content.values()))
    taken = _peak_bytes() - before
    print(f"{name}: {size:,} bytes took {taken:,}")  # noqa: T201
    return 0 if taken <= FACTOR * size + ALLOWANCE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
