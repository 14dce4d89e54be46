"""Many objects of a bucket, listed side by side.

A store gives a thousand keys in a request, and only the last of them tells where the next request
begins. Of a long listing the directories tell where its parts may begin.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import obstore

PAGE = 1_000
PAGES_ALONE = 4
"""Pages that are listed one after the other before a listing is parted."""
_LISTERS = 16
_LEVELS = 3
"""How deep directories are looked for."""

Entry: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


def list_below(
    client: Any, prefix: str, made: Callable[[Entry], T], *, parted: bool
) -> Iterator[T]:
    """Yield what is made of the objects below a prefix, in the order of their keys.

    An object that is called as the prefix is, is left out: it stands for the directory.

    ``parted`` says that a listing may begin at any key; where it may not, each part would read all
    that lies before it.
    """
    last = ""
    for number, page in enumerate(_pages(client, prefix, None)):
        yield from (made(entry) for entry in page if entry["path"] != prefix)
        last = page[-1]["path"] if page else last
        if parted and number + 1 == PAGES_ALONE:
            starts = _directories_after(client, prefix, last)
            if starts:
                yield from _parts(client, prefix, made, [last, *starts])
                return


def _parts(
    client: Any, prefix: str, made: Callable[[Entry], T], starts: Sequence[str]
) -> Iterator[T]:
    ends = [*starts[1:], None]
    with ThreadPoolExecutor(_LISTERS, "puredelta-list") as listers:
        parts = zip(starts, ends, strict=True)
        listed = listers.map(lambda part: list(map(made, _range(client, prefix, *part))), parts)
        yield from itertools.chain.from_iterable(listed)


def _range(client: Any, prefix: str, after: str, last: str | None) -> Iterator[Entry]:
    """Yield the objects after one key, and up to another."""
    for page in _pages(client, prefix, after):
        wanted = [entry for entry in page if last is None or entry["path"] <= last]
        yield from wanted
        if len(wanted) < len(page):
            return


def _directories_after(client: Any, prefix: str, key: str) -> list[str]:
    """Return some directories after a key, spread over all of them; none where there are few."""
    level = [prefix]
    for _ in range(_LEVELS):
        listed = (obstore.list_with_delimiter(client, path or None) for path in level)
        names = [name.rstrip("/") for found in listed for name in found["common_prefixes"]]
        level = sorted(name for name in names if name > key or key.startswith(f"{name}/"))
        if len(level) >= _LISTERS or not level:
            break
    later = [name for name in level if name > key]
    return later[:: -(-len(later) // _LISTERS) or 1]


def _pages(client: Any, prefix: str, after: str | None) -> Iterator[Sequence[Entry]]:
    return iter(obstore.list(client, prefix or None, offset=after, chunk_size=PAGE))
