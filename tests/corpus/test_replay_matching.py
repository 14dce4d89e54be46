"""Cases of the corpus: matching, rules, features."""

from __future__ import annotations

from tests.corpus.replay import replay_of

test_recorded_statement = replay_of("matching", "rules", "features")
