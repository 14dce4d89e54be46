"""Answers longer than what Java writes at once."""

from __future__ import annotations

import io
import socket
import threading
import time

import pytest

from puredelta.spark.jvm.py4j_quickack import QuickackReader, quick_answers

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "TCP_QUICKACK"), reason="acknowledgements are this kernel's business"
)


class Recorded:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.options: list[tuple[int, int, int]] = []

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)
        self._connection.setsockopt(*option)


def test_only_answers_in_pieces_are_acknowledged() -> None:
    """As Java writes them: 8 KB, then the rest, which waits for an acknowledgement."""
    listening = socket.create_server(("127.0.0.1", 0))
    long = b"x" * 12_000 + b"\n"
    answers = [b"short\n", long, b"short again\n", long]

    def serve() -> None:
        served, _ = listening.accept()
        with served, served.makefile("rb") as requests:
            for answer in answers:
                requests.readline()
                served.sendall(answer[:8192])
                if answer[8192:]:
                    served.sendall(answer[8192:])

    thread = threading.Thread(target=serve)
    thread.start()
    with socket.create_connection(listening.getsockname()) as client, listening:
        recorded = Recorded(client)
        reader = QuickackReader(client.makefile("rb"), recorded)  # type: ignore[arg-type]
        asked = []
        for answer in answers:
            client.sendall(b"request\n")
            assert reader.readline() == answer
            asked.append(len(recorded.options))
        thread.join()
    assert asked == [0, 1, 1, 2]
    assert set(recorded.options) == {(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)}


def test_a_long_schema_takes_no_longer_than_it_must(spark) -> None:
    frame = spark.range(1).selectExpr(
        *(f"id AS a_column_whose_name_is_long_{n}" for n in range(200))
    )
    client = spark.sparkContext._gateway._gateway_client
    before = client.get_thread_connection().stream
    assert isinstance(before, io.BufferedReader)
    seconds = []
    with quick_answers(spark), quick_answers(spark):
        for _ in range(10):
            java = frame._jdf.schema()
            started = time.perf_counter()
            assert len(java.json()) > 8192
            seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.03
    assert client.get_thread_connection().stream is before


def test_what_was_there_is_there_after_a_failure(spark) -> None:
    client = spark.sparkContext._gateway._gateway_client
    before = client.get_thread_connection().stream
    with pytest.raises(ValueError, match="mine"), quick_answers(spark):
        raise ValueError("mine")
    assert client.get_thread_connection().stream is before
