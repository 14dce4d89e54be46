"""Cases of the corpus: evolution, random."""

from __future__ import annotations

from tests.corpus.replay import replay_of

test_recorded_statement = replay_of("evolution", "random")
