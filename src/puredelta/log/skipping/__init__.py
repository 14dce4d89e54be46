"""Which files a predicate can skip."""
