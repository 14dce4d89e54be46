"""Which number Spark's hash partitioning sends where.

``repartition(n, column)`` puts a row into partition ``pmod(murmur3(column), n)``. With a
number chosen for every partition a frame is cut exactly as wanted: a group of rows per
task, none with two of them and none empty, on every version and kind of session.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_SEED = 42


def partition_keys(num_partitions: int) -> tuple[int, ...]:
    """Return, for each partition in order, an int that Spark sends there.

    >>> partition_keys(3)
    (0, 1, 11)
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < num_partitions:
        found.setdefault(spark_hash(candidate) % num_partitions, candidate)
        candidate += 1
    return tuple(found[number] for number in range(num_partitions))


def spark_hash(value: int) -> int:
    """Return ``hash(value)`` of Spark SQL for an ``int``: 32-bit Murmur3 with its seed.

    >>> spark_hash(1)
    -559580957
    """
    mixed = _rotated(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    state = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4  # the length in bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
