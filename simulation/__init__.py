"""Writers of one table, interleaved in one process by a seed, and a ledger that misses nothing."""
