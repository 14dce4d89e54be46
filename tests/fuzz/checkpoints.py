"""``python -m tests.fuzz.checkpoints --examples 5000``: damage checkpoints, and count the outcomes.

A damaged checkpoint is gone around, refused with a code, or it gives the same files. Other files
are allowed only where the damaged pages have no checksum: then nothing tells a value from another.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from functools import cache
from random import Random

import pyarrow.parquet as pq

from puredelta.errors import DeltaError
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from tests.faults import MemoryStore
from tests.fuzz.logs import FORMS, ROOT, valid_log

CHECKED = ("own", "own v2", "parts", "json", "parquet")
"""Forms whose pages have checksums."""
UNCHECKED = ("classic",)
_VERSION = 3


@cache
def checkpointed(form: str) -> Mapping[str, bytes]:
    """Return a log whose commits up to the checkpoint are gone, so that the checkpoint decides."""
    if form in FORMS:
        files = dict(valid_log(form))
        return files if form in UNCHECKED else {n: _checked(n, c) for n, c in files.items()}
    store = MemoryStore(ROOT)
    for path, content in valid_log("commits").items():
        store.put(path, content)
    snapshot = TableLog(store).snapshot(version=_VERSION)
    write_checkpoint(store, snapshot, now_ms=0)
    for version in range(_VERSION):
        store.delete(f"_delta_log/{version:020d}.json")
    return dict(store.files)


def _checked(name: str, content: bytes) -> bytes:
    """Write a Parquet file again, with checksums of its pages."""
    if not name.endswith(".parquet"):
        return content
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(content)), sink, write_page_checksum=True)
    return sink.getvalue()


def damaged(files: Mapping[str, bytes], random: Random) -> dict[str, bytes]:
    """Return a log with one to three other bits or bytes in a Parquet file of its checkpoint."""
    changed = dict(files)
    name = random.choice([n for n in sorted(files) if n.endswith(".parquet")])
    content = bytearray(files[name])
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(content))
        if random.random() < 0.6:
            content[at] ^= 1 << random.randrange(8)
        else:
            content[at] = random.randrange(256)
    changed[name] = bytes(content)
    return changed


def outcome(form: str, random: Random) -> str:
    """Read a damaged checkpoint; return what came of it.

    Raises:
        AssertionError: other files although every page has a checksum.
        Exception: anything that is no `DeltaError`.
    """
    files = checkpointed(form)
    try:
        found = _state(damaged(files, random))
    except DeltaError as refusal:
        return refusal.code.name
    if found == _state(files):
        return "the same state"
    assert form in UNCHECKED, f"{form}: other files"
    return "another state, in pages without checksums"


def _state(files: Mapping[str, bytes]) -> tuple[list[Add], object]:
    store = MemoryStore(ROOT)
    for path, content in files.items():
        store.put(path, content)
    snapshot = TableLog(store).snapshot()
    adds = sorted(snapshot.files.adds(), key=lambda add: (add.path, str(add.deletion_vector)))
    small = (snapshot.protocol, snapshot.metadata, snapshot.state.set_transactions)
    return adds, (small, snapshot.state.domain_metadata, snapshot.tombstones.num_rows)


def main() -> int:
    """Return 1 if any example was a violation; print each with its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    started = time.monotonic()
    for seed in range(options.seed, options.seed + options.examples):
        random = Random(seed)
        form = random.choice((*CHECKED, *UNCHECKED))
        try:
            counts[outcome(form, random)] += 1
        except Exception:  # noqa: BLE001 - that is what is looked for
            counts["VIOLATION"] += 1
            print(f"seed {seed} {form}\n{traceback.format_exc()}", flush=True)  # noqa: T201
    for result, number in counts.most_common():
        print(f"{number:8}  {result}")  # noqa: T201
    print(f"{options.examples} examples in {time.monotonic() - started:.0f} s")  # noqa: T201
    return 1 if counts["VIOLATION"] else 0


if __name__ == "__main__":
    sys.exit(main())
