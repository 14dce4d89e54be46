"""Python objects that Spark's threads call in a classic session."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from puredelta.spark.jvm.gateway import gateway_of, java_class, proxy_name

_pools_by_jvm: dict[tuple[Any, str], Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerPool:
    """Threads of the JVM that call Python for Spark's own threads.

    Py4J keeps a connection and a Python thread for each thread of the JVM that has ever called
    back, and Spark prepares every shuffle on a new one. Also, a call from the JVM thread that
    serves a Python thread would be answered on that one, where Ctrl-C tears the connection.
    """

    name: str
    threads: int
    call_days_max: int
    """Time after which a call fails, in days."""

    def caller(self, spark: SparkSession, target: object, interface: str) -> Any:
        """Return a Java object of an interface whose calls reach a Python object."""
        jvm = gateway_of(spark).jvm
        days = java_class(jvm, "java.util.concurrent.TimeUnit").DAYS
        kind = java_class(jvm, "java.lang.Class").forName(interface)
        return self._limiter(gateway_of(spark)).newProxy(target, kind, self.call_days_max, days)

    def _limiter(self, gateway: JavaGateway) -> Any:
        key = (gateway.jvm._gateway_client, self.name)
        limiter = _pools_by_jvm.get(key)
        if limiter is None:
            start_callbacks: Any = ensure_callback_server_started
            start_callbacks(gateway)
            pools = java_class(gateway.jvm, "org.apache.spark.util.ThreadUtils")
            threads = pools.newDaemonFixedThreadPool(self.threads, self.name)
            limiters = "com.google.common.util.concurrent.SimpleTimeLimiter"
            limiter = _pools_by_jvm[key] = java_class(gateway.jvm, limiters).create(threads)
        return limiter


PLANNING = CallerPool(name="puredelta-file-index", threads=8, call_days_max=1)
STREAMING = CallerPool(name="puredelta-stream", threads=16, call_days_max=36_500)


class ComparedByName:
    """A Python object that Java compares by the name of its proxy (`name_proxy`)."""

    java_name: str

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        """Return a number that is the same for equal names."""
        return int.from_bytes(hashlib.sha256(self.java_name.encode()).digest()[:3], "big")

    def equals(self, other: Any) -> bool:
        """Return whether another object has the name; it is a Java object, which is not asked."""
        return proxy_name(other) == self.java_name

    def toString(self) -> str:  # noqa: N802 - Java's name
        """Return the text of the object in plans."""
        return self.java_name
