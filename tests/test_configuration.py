"""``docs/configuration.md`` says what the code does: no setting is read that it does not name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from puredelta.commands.dml.settings import MergeSettings
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.schema.types import LONG, STRING, StructField, StructType
from puredelta.protocol.table.stats import indexed_leaves, without_statistics
from puredelta.spark.offload.workers import WORKER_CONFS
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import (
    HONOURED,
    OWN,
    PREFIX,
    REFUSED,
    WITHOUT_EFFECT,
    DeltaConf,
    Handling,
    OwnConf,
    RefusedConfs,
    check_settings,
)
from tests.protocol.table.test_table_config import config_of

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "puredelta"
REGISTRY = Path(delta_conf.__file__)
REFUSALS = tuple(conf for group in REFUSED for conf in group.confs)
NAMES = {conf.name for conf in (*HONOURED, *WITHOUT_EFFECT, *REFUSALS)}


def test_the_page_is_up_to_date() -> None:
    script = ROOT / "docs" / "generate_configuration.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_configuration.py"


def test_the_code_knows_no_other_setting() -> None:
    used = {
        name.rstrip(".")
        for path in SOURCES.rglob("*.py")
        for name in re.findall(
            re.escape(PREFIX) + r"([A-Za-z.]+[A-Za-z])(?![A-Za-z.])", path.read_text()
        )
    }
    known = {name.rstrip(".") for name in NAMES}
    assert {n for n in used if not n.startswith("properties.defaults")} <= known


def test_what_is_honoured_is_read() -> None:
    others = "".join(p.read_text() for p in SOURCES.rglob("*.py") if p != REGISTRY)
    words = set(re.findall(r"\w+", others))
    rows = {name: conf for name, conf in vars(delta_conf).items() if isinstance(conf, DeltaConf)}
    assert set(rows.values()) == {*HONOURED, *OWN}
    unread = {
        name for name, conf in rows.items() if name not in words and f'"{conf.key}"' not in others
    }
    # `puredelta.log.changes.schema_log` puts their names together from those of options.
    assert unread == {"ALLOW_RENAME", "ALLOW_DROP", "ALLOW_RENAME_AND_DROP", "ALLOW_TYPE_CHANGE"}


def test_every_setting_is_handled_in_one_way() -> None:
    """S-01, S-02; that none of delta-spark's is left out is a reference test."""
    refused = {conf.name for conf in REFUSALS}
    assert len(NAMES) == len(HONOURED) + len(WITHOUT_EFFECT) + len(refused)
    assert {conf.handling for conf in HONOURED} == {Handling.HONOURED}
    assert {conf.handling for conf in WITHOUT_EFFECT} == {Handling.WITHOUT_EFFECT}
    assert {conf.handling for conf in REFUSALS} == {Handling.REFUSED}


def test_every_group_of_refused_settings_is_asked_for() -> None:
    others = "".join(p.read_text() for p in SOURCES.rglob("*.py") if p != REGISTRY)
    groups = [n for n, value in vars(delta_conf).items() if isinstance(value, RefusedConfs)]
    assert len(groups) == len(REFUSED)
    assert [name for name in groups if f"{name}.require_defaults(" not in others] == []


@pytest.mark.parametrize("group", REFUSED, ids=lambda group: group.statements)
def test_a_setting_is_refused_by_name_unless_it_says_what_its_default_does(
    group: RefusedConfs,
) -> None:
    for conf in group.confs:
        default = str(conf.default)
        for same in (default, default.upper(), f" {default} "):
            group.require_defaults({conf.key: same})
        other = {"true": "False", "false": " TRUE"}.get(default, "7")
        with pytest.raises(UnsupportedError, match=re.escape(conf.key)) as caught:
            group.require_defaults({conf.key: other})
        assert caught.value.code is ErrorCode.UNSUPPORTED_SETTING
    group.require_defaults({})


@pytest.mark.parametrize("text", ["maybe", "", "1", "no"])
def test_a_value_that_is_neither_true_nor_false_is_an_error(text: str) -> None:
    key = delta_conf.REPLACE_WHERE_DATA_COLUMNS.key
    with pytest.raises(InvalidRequestError, match=re.escape(key)) as caught:
        check_settings({key: text})
    assert caught.value.code is ErrorCode.INVALID_CONF_VALUE_TYPE
    check_settings({key: " FALSE "})


def test_a_name_that_is_no_setting_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    misspelt = PREFIX + "replacewhere.datacolumns.enabled"
    families = {PREFIX + "properties.defaults.appendOnly": "1"}
    families[PREFIX + "streaming.allowSourceColumnDrop.ckpt_5"] = "always"
    for _ in range(2):
        check_settings({misspelt: "false", **families, "spark.sql.x": "1"})
    (record,) = caplog.records
    assert misspelt in record.message
    assert f"Did you mean {PREFIX}replaceWhere.dataColumns.enabled?" in record.message


def test_a_setting_of_this_library_has_the_type_of_its_default() -> None:
    for conf in (*OWN, *WORKER_CONFS):
        assert isinstance(conf, OwnConf)
        if conf.default is not None:
            assert conf.read({}) == conf.read({conf.key: f" {conf.default.upper()} "})


@pytest.mark.parametrize("conf", [*OWN, *WORKER_CONFS])
def test_another_value_is_refused_by_name(conf: OwnConf[object]) -> None:
    for text in ("", "-1", "maybe"):
        with pytest.raises(InvalidRequestError, match=re.escape(f"{conf.key} is {text!r}: set")):
            conf.read({conf.key: text})


def test_void_columns_are_refused_on_spark_4_0_unless_the_session_minds() -> None:
    """M-56."""
    key = delta_conf.DROP_NULL_COLUMNS.key
    assert MergeSettings.parse({}, spark_version="4.0.1").refuses_void
    assert not MergeSettings.parse({}, spark_version="4.2.0").refuses_void
    assert not MergeSettings.parse({key: "false"}, spark_version="4.0.1").refuses_void
    assert MergeSettings.parse({key: "true"}, spark_version="4.2.0").refuses_void


def test_null_structs_of_a_star_follow_both_settings() -> None:
    """M-45."""
    off = {delta_conf.PRESERVE_NULL_STRUCTS.key: "false"}
    assert not MergeSettings.parse(off).keeps_null_structs_in_star
    star_off = MergeSettings.parse({delta_conf.PRESERVE_NULL_STRUCTS_STAR.key: "false"})
    assert (star_off.keeps_null_structs, star_off.keeps_null_structs_in_star) == (True, False)


def test_files_without_statistics_are_those_of_a_table_that_indexes_nothing() -> None:
    """`stats.collect`: the table itself stays what it is."""
    schema = StructType((StructField("a", LONG), StructField("b", STRING)))
    config = config_of(schema, (), dataSkippingStatsColumns="a")
    assert indexed_leaves(config) == (("a",),)
    assert indexed_leaves(without_statistics(config)) == ()
    assert without_statistics(config).metadata == config.metadata
