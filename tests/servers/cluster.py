"""A standalone cluster of processes: a master, and workers that may not see some folders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark
from typing_extensions import Self

from tests.servers.process import LOOPBACK, Server

_DAEMON = {
    "SPARK_NO_DAEMONIZE": "1",
    "SPARK_LOCAL_IP": LOOPBACK,
    "SPARK_PUBLIC_DNS": LOOPBACK,
    "SPARK_DAEMON_MEMORY": "256m",
}


def can_hide_folders() -> bool:
    """Tell whether processes get mounts of their own here (root on Linux)."""
    probe = "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt"
    try:
        subprocess.run(["unshare", "-m", "sh", "-c", probe], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Cluster:
    """A master and workers, each with one core; their folders are below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: list[Server] = []
        arguments = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        master = self._start("master", [_command("master.Master"), *arguments])
        master.wait_until(master.says("New state: ALIVE"))
        found = re.search(r"Starting Spark master at (spark://\S+)", master.log.read_text())
        assert found
        self.url = found[1]

    def add_workers(self, names: Sequence[str], hidden: Sequence[Path] = ()) -> None:
        """Start workers to which some folders are empty, and wait for all of them."""
        started = [self._add(name, hidden) for name in names]
        for worker in started:
            worker.wait_until(worker.says("Successfully registered with master"))

    def _add(self, name: str, hidden: Sequence[Path]) -> Server:
        arguments = ["--host", LOOPBACK, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        command = [_command("worker.Worker"), *arguments, self.url]
        return self._start(name, [_hiding(hidden), *command])

    def _start(self, name: str, parts: list[object]) -> Server:
        command = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        folder = self._folder / name
        env = {**_DAEMON, "SPARK_WORKER_DIR": f"{folder}/work", "SPARK_LOCAL_DIRS": f"{folder}/tmp"}
        server = Server(command, folder / "log", env | {"SPARK_HOME": str(_HOME)})
        self._servers.append(server)
        return server

    def stop(self) -> None:
        for server in reversed(self._servers):
            server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def settings(cluster: Cluster) -> dict[str, str]:
    """Return the settings of a session on a cluster, whose workers import nothing of the driver."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return {
        "spark.master": cluster.url,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": "",
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.sql.shuffle.partitions": "4",
        "spark.task.maxFailures": "20",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }


_HOME = Path(pyspark.__file__).parent


def _command(name: str) -> list[str]:
    return [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]


def _hiding(folders: Sequence[Path]) -> list[str]:
    outermost = [f for f in folders if not any(f != g and f.is_relative_to(g) for g in folders)]
    if not outermost:
        return []
    mounts = " && ".join(f"mount -t tmpfs tmpfs '{folder}'" for folder in outermost)
    isolated = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*isolated, "sh", "-c", f'{mounts} && exec "$@"', "sh"]
