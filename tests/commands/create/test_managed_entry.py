"""Tables whose directory the catalog owns: a rival may create one there at the same time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.commands.create import as_select, create_table, registered
from puredelta.commands.create.as_select import NewTable
from puredelta.commands.create.clone import CloneRequest, clone_registered
from puredelta.commands.create.create_table import CreateMode
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import create_registered
from puredelta.errors import CommitUnknownError, DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.spark.catalog.catalog_entries import EntryName, default_location, is_taken, register

NAME = EntryName(database="default", name="contested")
COLUMNS = StructType((StructField("id", LONG),))


@pytest.fixture
def place(spark: SparkSession) -> Iterator[Path]:
    """Where the table belongs; nothing is there before and after."""
    path = Path(default_location(spark, NAME).removeprefix("file:"))
    assert not path.exists()
    yield path
    spark.sql(f"DROP TABLE IF EXISTS {NAME.quoted}")
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def rival(spark: SparkSession, tmp_path: Path, place: Path) -> Callable[[], None]:
    """Let another application, whose catalog is another, have its table at the place."""
    prepared = str(tmp_path / "rival")
    puredelta.write(spark.range(4), prepared)

    def create() -> None:
        shutil.copytree(prepared, place, dirs_exist_ok=True)

    return create


def rows_of(spark: SparkSession, place: Path) -> int:
    return puredelta.read(spark, str(place)).count()


def rows_that_wait_for(
    spark: SparkSession, tmp_path: Path, place: Path, *, fails: bool
) -> DataFrame:
    """Return rows during whose job the rival creates its table; the job may fail after that."""
    prepared, there = str(tmp_path / "rival"), str(place)

    def meet(number):  # type: ignore[no-untyped-def]
        shutil.copytree(prepared, there, dirs_exist_ok=True)
        if fails:
            raise RuntimeError("a mistake of the user's")
        return number

    return spark.range(0, 1, 1, 1).select(F.udf(meet, "long")("id").alias("id"))


def at_registration(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[], None], *, module: object = registered
) -> None:
    """Call a function when the entry has been made."""

    def meeting(*arguments: object, **named: object) -> None:
        register(*arguments, **named)  # type: ignore[arg-type]
        action()

    monkeypatch.setattr(module, "register", meeting)


@pytest.mark.parametrize("fails", [False, True])
def test_the_loser_of_a_race_leaves_the_table_of_the_winner(
    spark: SparkSession,
    tmp_path: Path,
    place: Path,
    rival: Callable[[], None],
    *,
    fails: bool,
) -> None:
    rows = rows_that_wait_for(spark, tmp_path, place, fails=fails)
    table = NewTable(
        name=NAME, location=None, definition=TableDefinition(columns=StructType(())), rows=rows
    )
    with pytest.raises(Exception, match="mistake" if fails else "created"):
        create_registered(spark, table)
    assert rows_of(spark, place) == 4
    assert not is_taken(spark, NAME)
    of_rival = {path.name for path in (tmp_path / "rival").iterdir()}
    assert {path.name for path in place.iterdir()} == of_rival, "what the loser wrote is gone"


def test_a_statement_without_rows_leaves_it_too(
    spark: SparkSession, place: Path, rival: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_registration(monkeypatch, rival)
    definition = TableDefinition(columns=COLUMNS)
    with pytest.raises(DeltaError):
        create_registered(spark, NewTable(name=NAME, location=None, definition=definition))
    assert rows_of(spark, place) == 4
    assert not is_taken(spark, NAME)


def test_an_entry_of_which_no_answer_comes_is_taken_back(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> str:
        raise ConnectionError("lost")

    monkeypatch.setattr(registered, "entry_mark", lost)
    table = NewTable(name=NAME, location=None, definition=TableDefinition(columns=COLUMNS))
    with pytest.raises(ConnectionError, match="lost"):
        create_registered(spark, table)
    assert not is_taken(spark, NAME)
    assert not place.exists()


def test_so_does_a_clone(
    spark: SparkSession,
    tmp_path: Path,
    place: Path,
    rival: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = TableLog.open(str(tmp_path / "rival")).snapshot()
    at_registration(monkeypatch, rival)
    with pytest.raises(DeltaError):
        clone_registered(spark, source, NAME, CloneRequest(shallow=True), mode=CreateMode.CREATE)
    assert rows_of(spark, place) == 4
    assert not is_taken(spark, NAME)


def test_an_entry_that_somebody_else_has_made_meanwhile_stays(
    spark: SparkSession, place: Path, rival: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was dropped and given to another table while ours was being made."""

    def replaced() -> None:
        spark.sql(f"DROP TABLE {NAME.quoted}")
        rival()
        register(spark, NAME, spark.range(0).schema, location=f"file:{place}")

    monkeypatch.setattr(create_table, "plan_table", lambda *_, **__: replaced())
    definition = TableDefinition(columns=COLUMNS)
    with pytest.raises(AttributeError):
        create_registered(spark, NewTable(name=NAME, location=None, definition=definition))
    assert is_taken(spark, NAME)
    assert rows_of(spark, place) == 4


def test_what_fails_alone_leaves_nothing(
    spark: SparkSession, tmp_path: Path, place: Path, rival: Callable[[], None]
) -> None:
    del rival
    shutil.rmtree(tmp_path / "rival")
    rows = rows_that_wait_for(spark, tmp_path, place, fails=True)
    table = NewTable(
        name=NAME, location=None, definition=TableDefinition(columns=StructType(())), rows=rows
    )
    with pytest.raises(Exception, match="FileNotFoundError"):
        create_registered(spark, table)
    assert not is_taken(spark, NAME)
    assert not place.exists()
    table = NewTable(name=NAME, location=None, definition=TableDefinition(columns=COLUMNS))
    create_registered(spark, table)
    assert rows_of(spark, place) == 0


@pytest.mark.parametrize("landed", [False, True])
def test_who_is_interrupted_leaves_an_entry_only_where_a_table_is(
    spark: SparkSession,
    place: Path,
    rival: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    landed: bool,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        if landed:
            rival()
        raise KeyboardInterrupt

    monkeypatch.setattr(as_select, "create_table", interrupted)
    table = NewTable(name=NAME, location=None, definition=TableDefinition(columns=COLUMNS))
    with pytest.raises(KeyboardInterrupt):
        create_registered(spark, table)
    assert is_taken(spark, NAME) is landed
    assert place.exists() is landed


def test_an_unknown_outcome_keeps_the_entry(
    spark: SparkSession,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise CommitUnknownError("no answer", code=ErrorCode.COMMIT_STATE_UNKNOWN)

    monkeypatch.setattr(as_select, "create_table", unknown)
    table = NewTable(name=NAME, location=None, definition=TableDefinition(columns=COLUMNS))
    with pytest.raises(CommitUnknownError):
        create_registered(spark, table)
    assert is_taken(spark, NAME)


def test_an_entry_whose_maker_was_killed(spark: SparkSession, place: Path) -> None:
    """The next CREATE says that the name is taken; replacing and dropping both help."""
    register(spark, NAME, spark.range(0).schema, location=None)
    definition = TableDefinition(columns=COLUMNS)
    table = NewTable(name=NAME, location=None, definition=definition)
    with pytest.raises(DeltaError, match="already exists"):
        create_registered(spark, table)
    registered.define_registered(spark, table, mode=CreateMode.CREATE_IF_NOT_EXISTS)
    assert not TableLog.open(str(place)).exists(), "its maker may still be at work"
    registered.define_registered(spark, table, mode=CreateMode.CREATE_OR_REPLACE)
    assert rows_of(spark, place) == 0
    spark.sql(f"DROP TABLE {NAME.quoted}")
    assert not place.exists()
