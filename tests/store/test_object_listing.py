"""A long listing in parts has every object once, in the order of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from puredelta.store import object_client as object_listing
from puredelta.store.local import LocalStore
from puredelta.store.object_client import list_below


@pytest.mark.parametrize("prefix", ["", "t/"])
@pytest.mark.parametrize(
    "names",
    [
        [f"{n:03d}" for n in range(100)],
        [f"day={n % 40}/{n:03d}" for n in range(200)],
        [f"y={n % 3}/m={n % 7}/{n:03d}" for n in range(200)],
        [f"a={n % 5}/{n}" for n in range(30)] + [f"b={n}" for n in range(30)] + ["b=1/x", "zz"],
        ["a", "b/c"],
        [],
    ],
    ids=["flat", "partitions", "levels", "mixed", "few", "none"],
)
def test_parts_are_the_whole(
    monkeypatch: pytest.MonkeyPatch, prefix: str, names: list[str]
) -> None:
    monkeypatch.setattr(object_listing, "PAGE", 5)
    client = MemoryStore()
    for name in names:
        obstore.put(client, prefix + name, b"x")
    obstore.put(client, "u/other", b"x")
    asked: list[str] = []
    pages = object_listing.pages_below

    def counted(*given):
        asked.append(str(given))
        return pages(*given)

    monkeypatch.setattr(object_listing, "pages_below", counted)
    for parted in (True, False):
        asked.clear()
        found = list(list_below(client, prefix, lambda entry: entry["path"], parted=parted))
        wanted = [prefix + name for name in names] + ["u/other"] * (prefix == "")
        assert found == sorted(wanted)
        parts = len(asked)
        assert parts == 1 if not parted else parts <= 1 + object_listing._LISTERS + 1
        if parted and len(names) == 200:
            assert parts > 2


@pytest.mark.parametrize("ignores_offset", [False, True])
def test_a_listing_that_breaks_off_goes_on(
    monkeypatch: pytest.MonkeyPatch, ignores_offset: bool
) -> None:
    """obstore repeats requests, but no answer whose body does not come whole."""
    monkeypatch.setattr(object_listing, "PAGE", 5)
    monkeypatch.setattr(object_listing, "_WAIT_SECONDS", 0.0)
    client, names = MemoryStore(), [f"t/{n:03d}" for n in range(23)]
    for name in names:
        obstore.put(client, name, b"x")
    real, failures = obstore.list, iter([1, 0, 2, 9])

    def breaking(*given: Any, offset: str | None, **more: Any) -> Iterator[Any]:
        left = next(failures)
        for page in real(*given, offset=None if ignores_offset else offset, **more):
            if not left:
                raise GenericError("Generic S3 error: Error getting list response body: HTTP error")
            yield page
            left -= 1

    monkeypatch.setattr(obstore, "list", breaking)
    pages = object_listing.pages_below(client, "t/", None)
    assert [entry["path"] for page in pages for entry in page] == names
    assert next(failures, None) is None

    def refused(*_: Any, **__: Any) -> Any:
        raise GenericError("Generic S3 error: 403")

    monkeypatch.setattr(obstore, "list_with_delimiter", refused)
    with pytest.raises(GenericError, match="403"):
        object_listing.directory_of(client, "t/")


def test_links_and_levels_of_a_tree_are_listed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("puredelta.store.read_ahead._WAITED_SLOW_S", -1.0)
    for number in range(40):
        (tmp_path / f"p={number}" / "q=1").mkdir(parents=True)
        (tmp_path / f"p={number}" / "q=1" / "f").touch()
    (tmp_path / "p=0" / "back").symlink_to(tmp_path)
    found = sorted(file.path for file in LocalStore(tmp_path).walk(""))
    assert found == sorted(f"p={number}/q=1/f" for number in range(40))
