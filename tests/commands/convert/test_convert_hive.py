"""C-02, C-08: CONVERT of tables of the catalog, in Hive's metastore."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect_session import answers_of


@pytest.mark.spark
def test_c_02_in_a_metastore(tmp_path: Path) -> None:
    answers = answers_of("tests.commands.convert.hive_checks", tmp_path)
    assert len(answers["checks"]) > 15
    assert not answers["failed"], "\n\n".join(answers["failed"].values())
