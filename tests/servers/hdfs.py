"""A NameNode and a DataNode on loopback, from PySpark's own JARs and one more."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark

from tests.servers.process import LOOPBACK, START_SECONDS, Server, free_port

_SERVER = "org.apache.hadoop.hdfs.server"
WEB_ADDRESS = "dfs.namenode.http-address"
_LOG4J = """rootLogger.level=info
rootLogger.appenderRef.c.ref=c
appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d %p %c{1}: %m%n
"""


def minicluster() -> Path | None:
    """Find ``hadoop-client-minicluster-*.jar`` in the folder SERVERS_JARS."""
    folder = os.environ.get("SERVERS_JARS", "")
    found = sorted(Path(folder).glob("hadoop-client-minicluster-*.jar")) if folder else []
    return found[-1] if found else None


class Hdfs(NamedTuple):
    uri: str
    settings: dict[str, str]
    """Hadoop's, of a client."""


@contextlib.contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """Start HDFS with nothing in it; takes ten seconds and more."""
    jar = minicluster()
    assert jar is not None
    uri, web = f"hdfs://{LOOPBACK}:{free_port()}", free_port()
    _configure(folder, uri, web)
    jars = [folder, jar, Path(pyspark.__file__).parent / "jars" / "*"]
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [*java, "-cp", os.pathsep.join(map(str, jars))]
    name_node = [*command, f"{_SERVER}.namenode.NameNode"]
    once = Server([*name_node, "-format", "-force", "-nonInteractive"], folder / "format.log")
    assert once.process.wait(START_SECONDS) == 0, once.log.read_text()
    with contextlib.ExitStack() as stack:
        first = Server(name_node, folder / "name-node.log")
        stack.callback(first.stop)
        first.wait_until(first.says("NameNode RPC up at"))
        second = Server([*command, f"{_SERVER}.datanode.DataNode"], folder / "data-node.log")
        stack.callback(second.stop)
        second.wait_until(second.says("Successfully sent block report"))
        yield Hdfs(uri, {"dfs.replication": "1", WEB_ADDRESS: f"{LOOPBACK}:{web}"})


def _configure(folder: Path, uri: str, web: int) -> None:
    anywhere = f"{LOOPBACK}:0"
    settings = {
        "fs.defaultFS": uri,
        "dfs.replication": 1,
        "dfs.permissions.enabled": "false",
        "dfs.namenode.name.dir": folder / "name",
        "dfs.datanode.data.dir": folder / "data",
        WEB_ADDRESS: f"{LOOPBACK}:{web}",
        "dfs.datanode.address": anywhere,
        "dfs.datanode.ipc.address": anywhere,
        "dfs.datanode.http.address": anywhere,
        "dfs.namenode.safemode.extension": 0,
        "dfs.client.read.shortcircuit": "false",
    }
    properties = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>"
        for key, value in settings.items()
    )
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(f"<configuration>{properties}</configuration>")
    (folder / "log4j2.properties").write_text(_LOG4J)
