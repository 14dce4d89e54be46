"""What a process and all it started used: processor time and memory (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DRIVER_JAVA, DRIVER_PYTHON = "driver Java", "driver Python"
EXECUTOR_JAVA, WORKERS = "executor Java", "Python workers"


@dataclass(frozen=True, slots=True)
class _Member:
    """A process of the family."""

    pid: int
    kind: str


def processor_seconds() -> float:
    """Return what this process and all it started have used, those that ended included."""
    ticks = 0
    for member in _family():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{member.pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def processes_of_family() -> dict[int, float]:
    """Return what each process that lives has used, without those that it started."""
    found: dict[int, float] = {}
    for member in _family():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{member.pid}/stat").read_text().rpartition(") ")[2].split()
            found[member.pid] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return found


def forget_peaks() -> None:
    """Start the peaks of this process and those it started anew."""
    for member in _family():
        with contextlib.suppress(OSError):
            Path(f"/proc/{member.pid}/clear_refs").write_text("5")


def peaks() -> dict[str, float]:
    """Return the peak resident memory since, in MB, by kind of process.

    The peaks of the processes of a kind are added up, whether they were reached at the same
    time or not, and memory that they share counts for each.
    """
    found: dict[str, float] = {}
    for member in _family():
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{member.pid}/status").read_text()
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            peak = int(fields.get("VmHWM", "0").split()[0]) / 1024
            found[member.kind] = found.get(member.kind, 0.0) + peak
    return found


def _family() -> list[_Member]:
    """Return this process and all that descend from it."""
    children: dict[int, list[tuple[int, str]]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            before, _, after_name = status.read_text().rpartition(") ")
            parent = int(after_name.split()[1])
            name = before.partition("(")[2]
            children.setdefault(parent, []).append((int(status.parent.name), name))
    own = os.getpid()
    return [_Member(own, DRIVER_PYTHON), *_below(own, children, in_java=False)]


def _below(
    pid: int, children: dict[int, list[tuple[int, str]]], *, in_java: bool
) -> Iterator[_Member]:
    """A driver's JVM is started by Python, that of an executor by the driver's."""
    for child, name in children.get(pid, ()):
        is_java = name == "java"
        if is_java:
            yield _Member(child, EXECUTOR_JAVA if in_java else DRIVER_JAVA)
        else:
            yield _Member(child, WORKERS)
        yield from _below(child, children, in_java=in_java or is_java)
