"""Reading ahead: order, laziness, and threads only where reading waits."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from puredelta.store.base import StoredFile
from puredelta.store.read_ahead import (
    FAR_READ_SECONDS,
    SLOW_READ_SECONDS,
    begin_reading,
    read_in_order,
)


class Readers:
    """A reader whose reads take as long as it is told, and the threads that called it."""

    def __init__(self, seconds=lambda _: 0.0):
        self._now = 0.0
        self._seconds = seconds
        self.ahead = []

    def clock(self):
        return self._now

    def __call__(self, source):
        if threading.current_thread() is threading.main_thread():
            self._now += self._seconds(source)
        else:
            self.ahead.append(source)
        return -source


def read(count, reader, **options):
    return list(read_in_order(range(count), reader, threads=3, clock=reader.clock, **options))


SLOW = 2 * SLOW_READ_SECONDS


@pytest.mark.parametrize("count", [0, 1, 8, 9, 300, 1000])
@pytest.mark.parametrize("seconds", [0.0, SLOW])
def test_everything_comes_in_order(count, seconds):
    assert read(count, Readers(lambda _: seconds)) == [(n, -n) for n in range(count)]


def test_what_is_near_is_read_without_threads():
    near = Readers()
    read(1000, near)
    assert not near.ahead


def test_now_and_then_a_slow_read_is_chance():
    chance = Readers(lambda n: SLOW if n % 2 else 0.0)
    read(1000, chance)
    assert not chance.ahead


def test_what_is_far_is_read_in_threads_that_try_again_now_and_then():
    far = Readers(lambda n: SLOW if n < 600 else 0.0)
    read(1000, far)
    ahead = set(far.ahead)
    assert ahead == {*range(8, 264), *range(272, 528), *range(536, 792)}
    assert not threads_left()


def test_what_is_across_a_network_is_read_in_many_threads():
    far = Readers(lambda _: 2 * FAR_READ_SECONDS)
    assert read(6000, far) == [(n, -n) for n in range(6000)]
    assert set(far.ahead) == {*range(2, 4098), *range(4100, 6000)}
    assert not threads_left()


def test_many_wait_for_a_network_at_the_same_time():
    together = threading.Barrier(60)

    def meet(n):
        if n < 2:
            time.sleep(2 * FAR_READ_SECONDS)
        else:
            together.wait(10)
        return n

    assert len(list(read_in_order(range(62), meet, threads=4))) == 62


def test_sources_are_taken_lazily():
    taken = []
    sources = (taken.append(n) or n for n in itertools.count())
    far = Readers(lambda _: SLOW)
    found = read_in_order(sources, far, threads=2, clock=far.clock)
    next(found)
    assert len(taken) == 1
    list(itertools.islice(found, 100))
    assert len(taken) < 120
    found.close()
    assert not threads_left()


def test_an_error_comes_in_its_place_and_ends_the_reading():
    def reader(n):
        if n == 20:
            raise FileNotFoundError(str(n))
        return n

    ticks = itertools.count()
    found = read_in_order(range(1000), reader, threads=2, clock=lambda: float(next(ticks)))
    assert [n for n, _ in itertools.islice(found, 20)] == list(range(20))
    with pytest.raises(FileNotFoundError, match="20"):
        next(found)
    assert not threads_left()


def threads_left():
    return [t for t in threading.enumerate() if t.name.startswith("puredelta-read")]


def test_what_is_read_before_it_is_asked_for() -> None:
    """Several files, or one that takes more than the request for its end."""

    def stored(*sizes: int) -> list[StoredFile]:
        return [StoredFile(path=str(s), size_bytes=s, modified_ms=0) for s in sizes]

    def begun(*sizes: int) -> set[str]:
        return {future.result() for future in begin_reading(stored(*sizes), str).values()}

    assert begun() == begun(10) == set()
    assert begun(10, 20) == {"10", "20"}
    assert begun(1 << 20) == {str(1 << 20)}
    assert begun(1 << 30) == begun(1 << 30, 10) == set()
