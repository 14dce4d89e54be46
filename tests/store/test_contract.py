from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.store.base import Store
from puredelta.store.local import LocalStore
from tests.faults import FailAt, MemoryStore
from tests.store.contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "new" / "table é#%20")


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestFailAtThatNeverFails(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return FailAt(MemoryStore(), 10**9)
