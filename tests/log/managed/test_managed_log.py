"""Logs of catalog-managed tables: reading what the catalog names, and commits through it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.tokens import OAuthTokens
from puredelta.catalogs.unity import UnityCatalog
from puredelta.errors import (
    CommitUnknownError,
    ConcurrentDeleteDeleteException,
    CorruptTableError,
    ErrorCode,
    InvalidRequestError,
    MetadataChangedException,
    UnsupportedError,
)
from puredelta.log.commit import commit_retry
from puredelta.log.commit.commit_request import Phase
from puredelta.log.managed.ratification import publish
from puredelta.log.managed.table_update import require_still_managed
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import DomainMetadata, Metadata
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.table_config import TableConfig
from tests.catalogs.managed import ORDERS, Orders, direct, unity, with_feature, with_properties
from tests.log.tables import Client, add, feature_protocol, metadata, remove
from tests.servers.unity import LIMIT, RefusedError, UnityServer, unity_server

CLIENT = {"client_id": "me", "client_secret": "secret"}
TABLE = "/delta/v1/catalogs/main/schemas/sales/tables/orders"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path}") as running:
        yield running


@pytest.fixture
def orders(server: UnityServer) -> Orders:
    return Orders.create(unity(server))


def hold_reports(server: UnityServer, *, times: int = 1_000) -> None:
    """Let no publication be reported, as if each writer died before."""
    original = server.update

    def update(query: Any, body: Any, *name: str) -> Any:
        actions = [one["action"] for one in body["updates"]]
        if actions == ["set-latest-backfilled-version"] and holding[0] > 0:
            holding[0] -= 1
            raise RefusedError(500, "InternalServerException", "not now")
        return original(query, body, *name)

    holding = [times]
    server.update = update  # type: ignore[method-assign]


# --- creation --------------------------------------------------------------------------------


def test_a_table_is_created_where_the_catalog_says(orders: Orders, server: UnityServer) -> None:
    table = server.tables["main", "sales", "orders"]
    assert f"file://{orders.folder}" == table.location
    assert orders.published() == [f"{0:020d}.json"]
    assert orders.staged() == []
    assert table.properties["delta.feature.catalogManaged"] == "supported"
    assert [field["name"] for field in table.fields] == ["id", "part", "sub"]
    snapshot = orders.log.snapshot()
    assert snapshot.version == 0
    assert snapshot.in_commit_timestamp_ms is not None


@pytest.mark.parametrize("kind", ["lost answer", "lost request", "500"])
def test_an_unanswered_creation_is_settled(server: UnityServer, kind: str) -> None:
    server.fail("POST", "/delta/v1/catalogs/main/schemas/sales/tables", kind)
    orders = Orders.create(unity(server))
    assert orders.log.snapshot().version == 0
    assert orders.append("a") == 1


def test_an_odd_answer_to_a_creation_leaves_the_outcome_open(server: UnityServer) -> None:
    def change(answer: Any) -> Any:
        return {**answer, "metadata": {**answer["metadata"], "properties": {}}}

    tables = "/delta/v1/catalogs/main/schemas/sales/tables"
    server.fail("POST", tables, "wrong", change=change)
    with pytest.raises(CommitUnknownError, match="may or may not be created"):
        Orders.create(unity(server))
    assert Orders.open(unity(server)).log.snapshot().version == 0


def test_a_name_that_was_taken_meanwhile_is_an_error(server: UnityServer) -> None:
    catalog = unity(server)
    original = server.create

    def create(query: Any, body: Any, *name: str) -> Any:
        server.create = original  # type: ignore[method-assign]
        Orders.create(direct(server))
        return original(query, body, *name)

    server.create = create  # type: ignore[method-assign]
    with pytest.raises(InvalidRequestError, match="already exists") as taken:
        Orders.create(catalog)
    assert taken.value.code is ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS
    assert Orders.open(catalog).log.snapshot().version == 0


def test_a_table_needs_the_feature_and_in_commit_timestamps(server: UnityServer) -> None:
    with pytest.raises(UnsupportedError, match="enableInCommitTimestamps") as refused:
        Orders.create(unity(server), properties={"delta.enableInCommitTimestamps": "false"})
    assert refused.value.code is ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION
    assert not server.tables


# --- reading ---------------------------------------------------------------------------------


def test_a_ratified_commit_is_read_before_it_is_published(
    orders: Orders, server: UnityServer
) -> None:
    orders.append("a")
    (orders.folder / "_delta_log" / f"{1:020d}.json").unlink()
    server.tables["main", "sales", "orders"].published = 0
    other = Orders.open(unity(server))
    assert other.paths() == ["a"]
    assert [entry.version for entry in other.log.history()] == [1, 0]
    assert [commit.version for commit in other.log.commits_after(0)] == [1]


def test_versions_that_the_catalog_does_not_know_are_no_part_of_the_table(
    orders: Orders,
) -> None:
    orders.append("a")
    log = orders.folder / "_delta_log"
    (log / f"{2:020d}.json").write_bytes((log / f"{1:020d}.json").read_bytes())
    other = Orders.open(orders.catalog)
    assert other.log.snapshot().version == 1
    assert other.log.latest_version() == 1
    assert [entry.version for entry in other.log.history()] == [1, 0]


def test_files_of_losers_are_never_read(orders: Orders) -> None:
    orders.append("a")
    staged = orders.folder / "_delta_log" / "_staged_commits"
    loser = (staged / orders.staged()[0]).read_text().replace('"a"', '"loser"')
    (staged / f"{1:020d}.00000000-0000-0000-0000-000000000000.json").write_text(loser)
    (staged / f"{2:020d}.00000000-0000-0000-0000-000000000000.json").write_text(loser)
    assert Orders.open(orders.catalog).paths() == ["a"]


def test_the_catalog_is_asked_before_the_listing(orders: Orders, server: UnityServer) -> None:
    """Otherwise a commit that is published in between would be in neither."""
    orders.append("a")
    other = Orders.open(unity(server))
    listed = other.store.files.list_from
    asked_before: list[int] = []

    def list_from(directory: str, start: str = "") -> Any:
        asked_before.append(len(server.asked("GET", TABLE)))
        return listed(directory, start)

    other.store.files.list_from = list_from  # type: ignore[method-assign]
    before = len(server.asked("GET", TABLE))
    other.log.snapshot()
    assert asked_before[0] == before + 1


def test_a_table_that_moves_on_is_read_on(orders: Orders, server: UnityServer) -> None:
    other = Orders.open(unity(server))
    for number in range(5):
        orders.append(f"f{number}")
        assert other.paths() == [f"f{n}" for n in range(number + 1)]
        assert orders.paths(version=number) == [f"f{n}" for n in range(number)]


def test_time_travel_uses_in_commit_timestamps(orders: Orders) -> None:
    times = []
    for number in range(3):
        clock = 10_000_000_000_000 + 1_000 * number
        orders.append(f"f{number}", clock=lambda clock=clock: clock)
        times.append(clock)
    assert orders.log.snapshot(timestamp_ms=times[1]).version == 2
    assert orders.log.snapshot(timestamp_ms=times[1] + 500).version == 2


def test_a_managed_table_by_its_path_is_refused(orders: Orders) -> None:
    orders.append("a")
    by_path = TableLog.open(str(orders.folder))
    for call in (by_path.snapshot, by_path.find_snapshot, by_path.history):
        with pytest.raises(UnsupportedError, match="catalog-managed") as refused:
            call()
        assert refused.value.code is ErrorCode.CATALOG_MANAGED_TABLE_BY_PATH


def test_no_table_at_a_path_becomes_catalog_managed(tmp_path: Path) -> None:
    protocol = feature_protocol(
        "inCommitTimestamp", readers=("catalogManaged", "vacuumProtocolCheck")
    )
    first = replace(metadata(), configuration={"delta.enableInCommitTimestamps": "true"})
    plain = Orders(TableLog.open(str(tmp_path / "plain")), catalog=None)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError) as refused:
        plain.commit([protocol, first], on=None)
    assert refused.value.code is ErrorCode.CATALOG_MANAGED_TABLE_BY_PATH
    assert not (tmp_path / "plain").exists()


# --- committing ------------------------------------------------------------------------------


def test_a_commit_is_staged_ratified_published_and_reported(
    orders: Orders, server: UnityServer
) -> None:
    assert orders.append("a") == 1
    [name] = orders.staged()
    assert orders.published() == [f"{0:020d}.json", f"{1:020d}.json"]
    log = orders.folder / "_delta_log"
    assert (log / f"{1:020d}.json").read_bytes() == (log / "_staged_commits" / name).read_bytes()
    table = server.tables["main", "sales", "orders"]
    assert (table.latest, table.published) == (1, 1)
    [request] = [
        body for body in server.asked("POST", TABLE) if body["updates"][0]["action"] == "add-commit"
    ]
    commit = request["updates"][0]["commit"]
    info = json.loads((log / f"{1:020d}.json").read_text().splitlines()[0])["commitInfo"]
    assert commit["timestamp"] == info["inCommitTimestamp"]
    assert commit["file-name"] == name
    assert [r["type"] for r in request["requirements"]] == ["assert-table-uuid"]


def test_nothing_is_at_the_plain_name_before_the_ratification(
    orders: Orders, server: UnityServer
) -> None:
    original, seen = server.update, []

    def update(query: Any, body: Any, *name: str) -> Any:
        seen.append(orders.published())
        return original(query, body, *name)

    server.update = update  # type: ignore[method-assign]
    orders.append("a")
    assert seen[0] == [f"{0:020d}.json"]
    assert seen[1] == [f"{0:020d}.json", f"{1:020d}.json"]


@pytest.mark.parametrize("kind", ["lost answer", "lost request", "500", "503"])
@pytest.mark.parametrize("times", [1, 3])
def test_an_unanswered_commit_is_sent_again_and_lands_once(
    orders: Orders, server: UnityServer, kind: str, times: int
) -> None:
    server.fail("POST", TABLE, kind, times=times)
    assert orders.append("a") == 1
    assert orders.paths() == ["a"]
    assert server.tables["main", "sales", "orders"].latest == 1
    names = {
        body["updates"][0]["commit"]["file-name"]
        for body in server.asked("POST", TABLE)
        if body["updates"][0]["action"] == "add-commit"
    }
    assert len(names) == 1, "the content never gets a second name"


def test_an_answer_that_cannot_be_read_leaves_the_outcome_open(
    orders: Orders, server: UnityServer
) -> None:
    server.fail("POST", TABLE, "wrong", change=lambda _: {"metadata": "nothing"})
    assert orders.append("a") == 1
    assert orders.paths() == ["a"]


def test_a_lost_answer_is_settled_when_the_commit_is_forgotten(
    orders: Orders, server: UnityServer
) -> None:
    """Another writer publishes and reports it before our request comes again."""
    other = Orders.open(direct(server))
    original = server.update

    def update(query: Any, body: Any, *name: str) -> Any:
        answer = original(query, body, *name)
        server.update = original  # type: ignore[method-assign]
        other.append("b")
        return answer

    server.update = update  # type: ignore[method-assign]
    server.fail("POST", TABLE, "lost answer")
    assert orders.append("a") == 1
    assert orders.paths() == ["a", "b"]
    assert server.tables["main", "sales", "orders"].latest == 2


def test_a_catalog_that_never_answers_leaves_the_outcome_unknown(
    orders: Orders, server: UnityServer
) -> None:
    read = orders.log.snapshot()
    server.fail("POST", TABLE, "lost request", times=100)
    with pytest.raises(CommitUnknownError, match="may or may not be ratified"):
        orders.append("a", on=read)


@pytest.mark.parametrize("kind", ["connection", "token", "busy"])
def test_a_commit_that_the_catalog_has_never_seen_is_no_commit(
    orders: Orders, server: UnityServer, kind: str
) -> None:
    """The outcome is not open: no catalog can carry out what it did not get, or has refused."""
    read = orders.log.snapshot()
    catalog = orders.store.catalog
    assert isinstance(catalog, UnityCatalog)
    nowhere = "http://127.0.0.1:1"
    away = {
        "connection": replace(catalog, url=nowhere),
        "token": replace(catalog, tokens=OAuthTokens(catalog.send, url=nowhere, **CLIENT)),
        "busy": catalog,
    }
    if kind == "busy":
        server.fail("POST", TABLE, "429", times=100)
    orders.store.catalog = away[kind]
    with pytest.raises(CatalogRequestError):
        orders.append("a", on=read)
    server.faults.clear()
    orders.store.catalog = catalog
    assert orders.append("b", on=read) == 1
    assert orders.paths() == ["b"]


def test_a_request_that_may_have_been_seen_leaves_the_outcome_open(
    orders: Orders, server: UnityServer
) -> None:
    read = orders.log.snapshot()
    server.fail("POST", TABLE, "lost request")
    server.fail("POST", TABLE, "429", times=100)
    with pytest.raises(CommitUnknownError):
        orders.append("a", on=read)


def test_a_table_that_the_catalog_was_never_asked_for_is_not_created(server: UnityServer) -> None:
    server.fail("POST", ".*/tables", "429", times=100)
    with pytest.raises(CatalogRequestError):
        Orders.create(unity(server))
    server.faults.clear()
    with pytest.raises(CatalogRequestError) as missing:
        unity(server).load(ORDERS)
    assert missing.value.refusal is Refusal.NOT_FOUND


def test_a_refused_commit_is_an_error_and_changes_nothing(
    orders: Orders, server: UnityServer
) -> None:
    server.fail("POST", TABLE, "400", times=1)
    with pytest.raises(CatalogRequestError, match="status 400"):
        orders.append("a")
    assert orders.paths() == []
    assert orders.append("b") == 1


def test_a_lost_race_is_rebased(orders: Orders, server: UnityServer) -> None:
    other = Orders.open(unity(server))
    read = orders.log.snapshot()
    other.append("theirs")
    assert orders.append("ours", on=read) == 2
    assert orders.paths() == ["ours", "theirs"]


def test_a_conflict_with_a_winner_that_only_the_catalog_names(
    orders: Orders, server: UnityServer
) -> None:
    orders.append("a")
    other = Orders.open(unity(server))
    read = orders.log.snapshot()
    hold_reports(server)
    other.commit([remove("a")])
    (orders.folder / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(ConcurrentDeleteDeleteException):
        orders.commit([remove("a")], on=read)


def test_commits_of_dead_writers_are_published_by_the_next_one(
    orders: Orders, server: UnityServer
) -> None:
    class DiedError(BaseException):
        pass

    for number in range(3):
        writer = Orders.open(unity(server))

        kept = writer.store.files.put_if_absent

        def put(path: str, content: bytes, kept: Any = kept) -> Any:
            if "_staged_commits" not in path:
                raise DiedError
            return kept(path, content)

        writer.store.files.put_if_absent = put  # type: ignore[method-assign]
        with pytest.raises(DiedError):
            writer.append(f"f{number}")
    assert orders.published() == [f"{0:020d}.json"]
    assert orders.append("last") == 4
    assert orders.published() == [f"{n:020d}.json" for n in range(5)]
    assert orders.paths() == ["f0", "f1", "f2", "last"]
    assert server.tables["main", "sales", "orders"].published == 4


def test_too_many_unpublished_commits_are_published_first(
    orders: Orders, server: UnityServer
) -> None:
    hold_reports(server, times=LIMIT)
    for number in range(LIMIT):
        assert orders.append(f"f{number}") == number + 1
    assert server.tables["main", "sales", "orders"].published == 0
    assert orders.append("over the limit") == LIMIT + 1
    assert server.tables["main", "sales", "orders"].published == LIMIT + 1


def test_a_failed_publication_is_no_failed_commit(orders: Orders, server: UnityServer) -> None:
    hold_reports(server, times=1)
    assert orders.append("a") == 1
    assert orders.paths() == ["a"]


def test_nothing_is_reported_before_its_copy_is_there(
    orders: Orders, server: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    files, kept = orders.store.files, orders.store.files.put_if_absent

    def put(path: str, content: bytes) -> Any:
        if "_staged_commits" not in path:
            raise OSError("the disk is full")
        return kept(path, content)

    files.put_if_absent = put  # type: ignore[method-assign]
    assert orders.append("a") == 1
    files.put_if_absent = kept  # type: ignore[method-assign]
    assert server.tables["main", "sales", "orders"].published == 0
    assert "the next writer publishes" in caplog.text
    assert orders.append("b") == 2
    assert server.tables["main", "sales", "orders"].published == 2


def test_a_plain_file_with_another_commit_is_never_reported(
    orders: Orders, server: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    original = server.update

    def update(query: Any, body: Any, *name: str) -> Any:
        (orders.folder / "_delta_log" / f"{1:020d}.json").write_text("{}")
        return original(query, body, *name)

    server.update = update  # type: ignore[method-assign]
    assert orders.append("a") == 1
    assert server.tables["main", "sales", "orders"].published == 0
    assert "without the catalog" in caplog.text
    assert Orders.open(unity(server)).paths() == ["a"], "the ratified file counts"


def test_two_writers_commit_every_change_once(orders: Orders, server: UnityServer) -> None:
    writers = [Orders.open(unity(server)) for _ in range(4)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                writers[number].append(f"w{number}-{turn}")
        except BaseException as failure:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(failure)

    for kind in ("lost request", "lost answer", "500"):
        server.fail("POST", TABLE, kind, times=4)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert orders.paths() == sorted(f"w{n}-{turn}" for n in range(4) for turn in range(5))
    assert orders.log.latest_version() == 20
    assert orders.published() == [f"{n:020d}.json" for n in range(21)]
    infos = [commit.commit_info for commit in orders.log.commits_after(-1)]
    times = [info.in_commit_timestamp_ms for info in infos if info is not None]
    assert times == sorted(set(times))


# --- metadata --------------------------------------------------------------------------------


def test_changes_of_metadata_travel_with_their_commit(orders: Orders, server: UnityServer) -> None:
    snapshot = orders.log.snapshot()
    changed = replace(
        with_properties(snapshot, owner="me", delta__checkpointInterval="7"),
        description="the orders",
    )
    domain = DomainMetadata(
        domain="delta.clustering", configuration='{"clusteringColumns": [["id"]]}'
    )
    protocol = with_feature(with_feature(snapshot.protocol, "domainMetadata"), "clustering")
    assert orders.commit([changed, protocol, domain]).version == 1
    body = next(
        body
        for body in reversed(server.asked("POST", TABLE))
        if body["updates"][0]["action"] == "add-commit"
    )
    assert [one["action"] for one in body["updates"]] == [
        "add-commit",
        "set-properties",
        "set-table-comment",
        "set-protocol",
        "set-domain-metadata",
    ]
    assert [r["type"] for r in body["requirements"]] == ["assert-table-uuid", "assert-etag"]
    table = server.tables["main", "sales", "orders"]
    assert table.properties["owner"] == "me"
    assert table.properties["delta.feature.clustering"] == "supported"
    assert table.comment == "the orders"
    removed = replace(with_properties(orders.log.snapshot(), owner=None), description=None)
    orders.commit([removed])
    assert "owner" not in table.properties
    assert table.comment == ""
    assert "delta.feature.clustering" not in orders.log.snapshot().metadata.configuration


def test_an_old_etag_is_renewed_where_no_commit_has_won(
    orders: Orders, server: UnityServer
) -> None:
    snapshot = orders.log.snapshot()
    original = server.update

    def update(query: Any, body: Any, *name: str) -> Any:
        server.tables["main", "sales", "orders"].etag += 1  # by hand, in the catalog alone
        server.update = original  # type: ignore[method-assign]
        return original(query, body, *name)

    server.update = update  # type: ignore[method-assign]
    assert orders.commit([with_properties(snapshot, owner="me")]).version == 1


def test_two_changes_of_metadata_exclude_each_other(orders: Orders, server: UnityServer) -> None:
    other = Orders.open(unity(server))
    read = orders.log.snapshot()
    other.commit([with_properties(read, owner="them")])
    with pytest.raises(MetadataChangedException):
        orders.commit([with_properties(read, owner="us")], on=read)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"io__unitycatalog__tableId": None}, "io.unitycatalog.tableId"),
        ({"io__unitycatalog__tableId": "another"}, "io.unitycatalog.tableId"),
        ({"delta__enableInCommitTimestamps": None}, "enableInCommitTimestamps"),
        ({"delta__enableInCommitTimestamps": "false"}, "enableInCommitTimestamps"),
        ({"delta__checkpointPolicy": "classic"}, "delta.checkpointPolicy = v2"),
        ({"delta__enableDeletionVectors": None}, "delta.enableDeletionVectors = true"),
    ],
)
def test_what_ties_a_table_to_its_catalog_stays(
    orders: Orders, changes: dict[str, str | None], lost: str
) -> None:
    snapshot = orders.log.snapshot()
    with pytest.raises(UnsupportedError, match=lost) as refused:
        orders.commit([with_properties(snapshot, **changes)])
    assert refused.value.code is ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION
    assert orders.staged() == []


def test_what_another_client_has_dropped_does_not_stop_commits(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-spark lets its users drop what the catalog demands."""
    snapshot = orders.log.snapshot()
    with monkeypatch.context() as other_client:
        other_client.setattr(commit_retry, "require_still_managed", lambda *_: None)
        orders.commit([with_properties(snapshot, delta__enableDeletionVectors="false")])
    orders.append("a")
    again = with_properties(orders.log.snapshot(), delta__enableDeletionVectors="true")
    orders.commit([again])
    assert orders.paths() == ["a"]


def test_commits_that_need_iceberg_metadata_are_refused_before_they_begin(orders: Orders) -> None:
    """The catalog would refuse them once their rows are written."""
    read = orders.log.snapshot()
    formats = {"delta__universalFormat__enabledFormats": "hudi,iceberg"}
    exported = TableConfig.of(read.protocol, with_properties(read, **formats))
    with pytest.raises(UnsupportedError, match="Iceberg metadata") as refused:
        require_still_managed(read.config, exported)
    assert refused.value.code is ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION
    require_still_managed(exported, read.config)
    with pytest.raises(UnsupportedError, match="Iceberg metadata"):
        Client(orders.log, replace(read, config=exported), capability=Capability.APPEND)


def test_the_feature_cannot_be_dropped(orders: Orders) -> None:
    snapshot = orders.log.snapshot()
    features = (snapshot.protocol.writer_features or frozenset()) - {"catalogManaged"}
    readers = (snapshot.protocol.reader_features or frozenset()) - {"catalogManaged"}
    without = replace(snapshot.protocol, reader_features=readers, writer_features=features)
    with pytest.raises(UnsupportedError, match="catalogManaged"):
        orders.commit([without])


# --- checkpoints and other files of the log --------------------------------------------------


def test_checkpoints_are_of_published_versions_only(orders: Orders, server: UnityServer) -> None:
    snapshot = orders.log.snapshot()
    orders.commit([with_properties(snapshot, delta__checkpointInterval="2")])
    files, kept = orders.store.files, orders.store.files.put_if_absent

    def put(path: str, content: bytes) -> Any:
        if path.endswith(f"{2:020d}.json"):
            raise OSError("not now")
        return kept(path, content)

    files.put_if_absent = put  # type: ignore[method-assign]
    orders.append("a")
    files.put_if_absent = kept  # type: ignore[method-assign]
    log = orders.folder / "_delta_log"
    assert not list(log.glob("*checkpoint*"))
    orders.append("b")
    orders.append("c")
    assert [path.name[:20] for path in log.glob("*.checkpoint.*")] == [f"{4:020d}"]
    assert Orders.open(unity(server)).paths() == ["a", "b", "c"]


def test_no_other_way_leads_to_a_commit_file(orders: Orders) -> None:
    orders.append("a")
    [staged] = orders.staged()
    plain = f"_delta_log/{9:020d}.json"
    for call in (
        lambda: orders.store.put_if_absent(plain, b""),
        lambda: orders.store.put_parts_if_absent(plain, [b""]),
        lambda: orders.store.put(plain, b""),
        lambda: orders.store.move("a", plain),
        lambda: orders.store.delete(f"_delta_log/{0:020d}.json"),
        lambda: orders.store.delete(f"_delta_log/_staged_commits/{staged}"),
        lambda: orders.store.delete_tree("_delta_log"),
    ):
        with pytest.raises(ValueError, match="ratification"):
            call()
    assert orders.paths() == ["a"]


# --- wrong answers ---------------------------------------------------------------------------


def changed(server: UnityServer, change: Any) -> None:
    server.fail("GET", TABLE, "wrong", times=100, change=change)


def test_an_older_version_is_refused(orders: Orders, server: UnityServer) -> None:
    """A catalog that was restored from a backup of one commit ago."""
    orders.append("a")
    orders.append("b")
    table = server.tables["main", "sales", "orders"]
    table.commits = [{**table.commits[-1], "version": 1}]
    table.published = 1
    with pytest.raises(CorruptTableError, match="lost commits") as refused:
        orders.log.snapshot()
    assert refused.value.code is ErrorCode.CATALOG_IS_BEHIND
    with pytest.raises(CorruptTableError, match="lost commits"):
        Orders.open(unity(server)).log.snapshot()


def test_a_new_process_writes_nothing_over_a_lost_commit(
    orders: Orders, server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append("a")
    orders.append("b")
    table = server.tables["main", "sales", "orders"]
    table.commits, table.published = [{**table.commits[-1], "version": 1}], 1
    monkeypatch.setattr("puredelta.log.managed.managed_store._newest_seen", {})
    other = Orders.open(unity(server))
    assert other.paths() == ["a"]
    with pytest.raises(CorruptTableError, match="version 2 is published") as refused:
        other.append("c")
    assert refused.value.code is ErrorCode.CATALOG_IS_BEHIND
    assert len(other.staged()) == 2


@pytest.mark.parametrize("reads_again", [True, False])
def test_a_process_that_has_read_a_lost_commit_neither_reads_nor_writes_on(
    orders: Orders, server: UnityServer, monkeypatch: pytest.MonkeyPatch, *, reads_again: bool
) -> None:
    """The version is another commit by now, which the catalog has forgotten already."""
    orders.append("a")
    orders.append("b")
    table = server.tables["main", "sales", "orders"]
    (orders.folder / "_delta_log" / f"{2:020d}.json").unlink()
    table.published = 1
    reader = Orders.open(unity(server))
    read = reader.log.snapshot()
    assert reader.paths() == ["a", "b"]
    table.commits = [{**table.commits[-1], "version": 1}]
    monkeypatch.setattr("puredelta.log.managed.managed_store._newest_seen", {})
    Orders.open(unity(server)).append("c")
    assert (table.latest, table.published) == (2, 2)
    with pytest.raises(CorruptTableError, match="another commit is published") as refused:
        reader.log.snapshot() if reads_again else reader.append("d", on=read)
    assert refused.value.code is ErrorCode.CATALOG_IS_BEHIND
    assert table.latest == 2


def test_a_lost_commit_that_was_listed_is_not_read_instead_of_the_published_one(
    orders: Orders, server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table was opened before the catalog lost the commit, and is read for the first time."""
    orders.append("a")
    orders.append("b")
    table = server.tables["main", "sales", "orders"]
    (orders.folder / "_delta_log" / f"{2:020d}.json").unlink()
    table.published = 1
    reader = Orders.open(unity(server))
    table.commits = [{**table.commits[-1], "version": 1}]
    monkeypatch.setattr("puredelta.log.managed.managed_store._newest_seen", {})
    Orders.open(unity(server)).append("c")
    assert (table.latest, table.published) == (2, 2)
    assert reader.paths() == ["a", "c"]
    reader.append("d")
    assert Orders.open(unity(server)).paths() == ["a", "c", "d"]


def test_a_version_that_was_reported_before_its_copy_is_read_from_its_staged_file(
    orders: Orders, server: UnityServer
) -> None:
    hold_reports(server)
    orders.append("a")
    reader = Orders.open(unity(server))
    (orders.folder / "_delta_log" / f"{1:020d}.json").unlink()
    server.tables["main", "sales", "orders"].published = 1
    assert reader.paths() == ["a"]


def test_a_version_that_others_publish_is_compared_once(
    orders: Orders, server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append("a")
    plain = orders.folder / "_delta_log" / f"{1:020d}.json"
    content = plain.read_bytes()
    plain.unlink()
    server.tables["main", "sales", "orders"].published = 0
    reader = Orders.open(unity(server))
    assert reader.paths() == ["a"]
    plain.write_bytes(content)
    server.tables["main", "sales", "orders"].published = 1
    read, reads = reader.store.files.read, list[str]()

    def noted(path: str) -> bytes:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(reader.store.files, "read", noted)
    assert reader.paths() == ["a"]
    assert f"_delta_log/{plain.name}" in reads
    reads.clear()
    assert reader.paths() == ["a"]
    assert f"_delta_log/{plain.name}" not in reads


@pytest.mark.parametrize("kind", ["cut", "longer"])
def test_a_staged_file_of_another_size_is_neither_read_nor_published(
    orders: Orders, server: UnityServer, kind: str
) -> None:
    """A file that ends after a whole line would be a smaller commit, and would be published so."""
    hold_reports(server)
    orders.commit([add("a"), add("b")])
    plain = orders.folder / "_delta_log" / f"{1:020d}.json"
    staged = next((orders.folder / "_delta_log" / "_staged_commits").iterdir())
    content = plain.read_bytes()
    plain.unlink()
    lines = content.splitlines(keepends=True)
    staged.write_bytes(b"".join(lines[:-1] if kind == "cut" else [*lines, lines[-1]]))
    reader = Orders.open(unity(server))
    with pytest.raises(CorruptTableError, match="has ratified"):
        reader.paths()
    with pytest.raises(CorruptTableError, match="has ratified"):
        publish(reader.store, reader.store.refresh())
    assert not plain.exists()
    staged.write_bytes(content)
    assert Orders.open(unity(server)).paths() == ["a", "b"]


def test_another_file_for_a_version_is_refused(orders: Orders, server: UnityServer) -> None:
    hold_reports(server)
    orders.append("a")
    table = server.tables["main", "sales", "orders"]
    table.commits[-1] = {**table.commits[-1], "file-name": f"{1:020d}.another.json"}
    with pytest.raises(CorruptTableError, match="lost commits"):
        orders.log.snapshot()


@pytest.mark.parametrize(
    "name", ["../../x.json", f"{1:020d}.json", f"{2:020d}.a.json", f"{1:020d}.a/b.json", "x"]
)
def test_a_file_name_that_is_not_the_version_is_refused(
    orders: Orders, server: UnityServer, name: str
) -> None:
    hold_reports(server)
    orders.append("a")

    def change(answer: Any) -> Any:
        return {**answer, "commits": [{**answer["commits"][0], "file-name": name}]}

    changed(server, change)
    with pytest.raises(CatalogRequestError, match="file name"):
        orders.log.snapshot()


def test_a_gap_between_commits_is_refused(orders: Orders, server: UnityServer) -> None:
    hold_reports(server)
    for name in "abc":
        orders.append(name)

    def change(answer: Any) -> Any:
        return {**answer, "commits": [answer["commits"][0], answer["commits"][2]]}

    changed(server, change)
    with pytest.raises(CatalogRequestError, match="no commit is between"):
        orders.log.snapshot()


def test_another_table_of_the_same_name_is_refused(orders: Orders, server: UnityServer) -> None:
    orders.append("a")
    server.drop(None, None, "main", "sales", "orders")
    Orders.create(unity(server))
    with pytest.raises(CatalogRequestError, match="another table"):
        orders.log.snapshot()


def test_the_staged_file_has_the_ratified_content(orders: Orders) -> None:
    orders.append("a")
    [staged] = orders.staged()
    lines = (orders.folder / "_delta_log" / "_staged_commits" / staged).read_text().splitlines()
    assert [type(parse_action(line.encode())).__name__ for line in lines] == ["CommitInfo", "Add"]


def test_phases_are_reported(orders: Orders, server: UnityServer) -> None:
    other, phases = Orders.open(unity(server)), []
    read = orders.log.snapshot()
    other.append("theirs")
    orders.append("ours", on=read, on_phase=phases.append)
    assert phases == [Phase.STAGED, Phase.LOST_RACE, Phase.REBASED, Phase.WRITTEN, Phase.FINISHED]


def test_a_commit_of_rows_sends_no_metadata(orders: Orders, server: UnityServer) -> None:
    orders.commit([add("a"), add("b")])
    bodies = server.asked("POST", TABLE)
    assert [[u["action"] for u in body["updates"]] for body in bodies] == [
        ["add-commit"],
        ["set-latest-backfilled-version"],
    ]
    assert isinstance(orders.log.snapshot().metadata, Metadata)
