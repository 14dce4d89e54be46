"""Every recorded statement again, on names of the catalog and over Spark Connect.

`tests.statements.test_connect_names` has a sample of them.
"""

from __future__ import annotations

import pytest

from tests.connect_session import ask

PARTS = 6
"""Each is a server of its own, and takes minutes."""


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_statements_by_name(part: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("connect")
    found = ask("tests.corpus.connect_replay", directory, str(part), str(PARTS), seconds_max=3600)
    assert found == {}
