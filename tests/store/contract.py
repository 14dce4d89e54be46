"""What every store must do, written once: a store's tests inherit `StoreContract`."""

from __future__ import annotations

import threading

import pytest

from puredelta.store.base import PutOutcome, Store, StoredFile

AWKWARD_NAMES = (
    "with space.parquet",
    "100%.parquet",
    "a%20b.parquet",
    "ümlaut-日本-🙂.parquet",
    "12:30:00.parquet",
    "hash#mark?.parquet",
    "plus+quote'\".parquet",
    "back\\slash.parquet",
)


class StoreContract:
    """Subclasses give a fixture ``store``: empty, rooted at a directory that may not exist."""

    def test_exactly_one_of_many_racers_creates(self, store: Store) -> None:
        outcomes: list[PutOutcome] = []
        start = threading.Barrier(16)

        def race(n: int) -> None:
            start.wait()
            outcomes.append(store.put_if_absent("_delta_log/1.json", f"{n:02d}".encode() * 1000))

        threads = [threading.Thread(target=race, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count(PutOutcome.CREATED) == 1
        assert outcomes.count(PutOutcome.ALREADY_EXISTS) == 15
        content = store.read("_delta_log/1.json")
        assert content == content[:2] * 1000

    def test_the_loser_does_not_change_the_content(self, store: Store) -> None:
        assert store.put_if_absent("a", b"first") is PutOutcome.CREATED
        assert store.put_if_absent("a", b"second") is PutOutcome.ALREADY_EXISTS
        assert store.read("a") == b"first"

    def test_put_replaces(self, store: Store) -> None:
        store.put("d/a", b"first")
        store.put("d/a", b"second")
        assert store.read("d/a") == b"second"

    def test_listing_is_sorted_and_starts_at_the_given_name(self, store: Store) -> None:
        for name in ("2", "10", "1"):
            store.put_if_absent(f"d/{name}", b"xyz")
        assert [f.name for f in store.list_from("d", "10")] == ["10", "2"]
        assert [(f.path, f.size_bytes) for f in store.list_from("d")] == [
            ("d/1", 3),
            ("d/10", 3),
            ("d/2", 3),
        ]
        assert all(f.modified_ms > 1_500_000_000_000 for f in store.list_from("d"))

    def test_listing_hides_temporaries_and_what_lies_deeper(self, store: Store) -> None:
        for path in ("d/.1.json.tmp", "d/1.json", "d/sub/2.json", "e/1.json", "top"):
            store.put(path, b"")
        assert [f.path for f in store.list_from("d")] == ["d/1.json"]
        assert [f.path for f in store.list_from("")] == ["top"]

    def test_listing_nothing(self, store: Store) -> None:
        assert list(store.list_from("absent")) == []
        store.put("file", b"")
        assert list(store.list_from("file")) == []
        assert list(store.walk("absent")) == []

    def test_walk_finds_everything(self, store: Store) -> None:
        paths = {"a", "d/.hidden", "d/1", "d/x/y/2", "_delta_log/0.json"}
        for path in paths:
            store.put(path, b"")
        assert {f.path for f in store.walk("")} == paths
        assert {f.path for f in store.walk("d")} == {"d/.hidden", "d/1", "d/x/y/2"}

    def test_missing_file(self, store: Store) -> None:
        with pytest.raises(FileNotFoundError):
            store.read("nothing")
        with pytest.raises(FileNotFoundError):
            store.open("no/thing")
        store.put("file", b"")
        with pytest.raises(FileNotFoundError):
            store.read("file/below")
        store.delete("nothing")
        store.delete_tree("nothing")
        assert not store.exists("nothing")

    def test_open_can_seek(self, store: Store) -> None:
        store.put("a", b"0123456789")
        with store.open("a") as stream:
            stream.seek(-3, 2)
            assert stream.read() == b"789"
            stream.seek(1)
            assert stream.read(2) == b"12"

    def test_the_end_of_a_file(self, store: Store) -> None:
        store.put("d/a", b"0123456789")
        assert store.read_end("d/a", 3) == (b"789", 10)
        assert store.read_end("d/a", 10) == store.read_end("d/a", 1 << 16) == (b"0123456789", 10)
        store.put("empty", b"")
        assert store.read_end("empty", 8) == (b"", 0)
        for missing in ("nothing", "d/a/below"):
            with pytest.raises(FileNotFoundError):
                store.read_end(missing, 8)

    def test_a_moved_file_has_its_new_name_only(self, store: Store) -> None:
        store.put("job/part=1/a.bin", b"content")
        store.move("job/part=1/a.bin", "_hidden/job/part=1/b.bin")
        assert store.read("_hidden/job/part=1/b.bin") == b"content"
        assert not store.exists("job/part=1/a.bin")
        with pytest.raises(FileNotFoundError):
            store.move("job/part=1/a.bin", "c.bin")

    def test_delete_and_exists(self, store: Store) -> None:
        for path in ("d/1", "d/x/2", "e"):
            store.put(path, b"")
        assert store.exists("d") and store.exists("d/x/2") and store.exists("e")  # noqa: PT018
        store.delete("e")
        store.delete_tree("d")
        assert not store.exists("d") and not store.exists("e")  # noqa: PT018
        assert list(store.walk("")) == []

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_names_are_taken_literally(self, store: Store, name: str) -> None:
        path = f"dir {name}/{name}"
        assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
        assert [f.path for f in store.list_from(f"dir {name}")] == [path]
        assert [f.path for f in store.walk("")] == [path]
        assert store.read(path) == b"x"
        store.delete(path)
        assert not store.exists(path)

    def test_an_inventory_passes_over_what_is_not_wanted(self, store: Store) -> None:
        for path in ("a.bin", "part=1/b.bin", "_log/c.bin", "part=1/_hidden/d.bin"):
            store.put(path, b"content")

        def is_wanted(path: str) -> bool:
            return path not in {"_log", "part=1/_hidden"}

        found = list(store.inventory("", is_wanted=is_wanted))
        assert {f.path for f in found if isinstance(f, StoredFile)} == {"a.bin", "part=1/b.bin"}
        below = list(store.inventory("part=1", is_wanted=is_wanted))
        assert [f.path for f in below if isinstance(f, StoredFile)] == ["part=1/b.bin"]

    def test_only_an_empty_directory_is_deleted(self, store: Store) -> None:
        store.put("part=1/b.bin", b"content")
        assert not store.delete_directory("part=1")
        assert store.exists("part=1/b.bin")
        assert not store.delete_directory("none")
