"""Cases of the corpus: clauses, nested, values."""

from __future__ import annotations

from tests.corpus.replay import replay_of

test_recorded_statement = replay_of("clauses", "nested", "values")
