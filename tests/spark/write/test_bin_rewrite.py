"""Numbers that Spark sends to a partition of our choice."""

from __future__ import annotations

from puredelta.spark.write.bin_rewrite import partition_keys, spark_hash


def test_keys_reach_every_partition_once() -> None:
    for number in (1, 2, 7, 200):
        keys = partition_keys(number)
        assert [spark_hash(key) % number for key in keys] == list(range(number))
