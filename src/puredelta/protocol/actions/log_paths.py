"""Names of the files in ``_delta_log``, parsed once (section "File Types").

An unknown name gives ``None`` and is no error, because other tools keep files beside the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_delta_log/_sidecars"
STAGED_DIRECTORY = "_delta_log/_staged_commits"
"""Commits of catalog-managed tables before they are published, and those that lost."""
CHANGE_DATA_DIRECTORY = "_change_data"
LAST_CHECKPOINT = "_last_checkpoint"
VERSION_MAX = 2**63 - 2
"""Another version can follow, whatever version a log has."""


@dataclass(frozen=True, slots=True)
class CommitFile:
    """``<version>.json``: the actions of one version."""

    version: int


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """``<low>.<high>.compacted.json``: the net actions of several versions, both ends included."""

    low: int
    high: int

    @property
    def version(self) -> int:
        """The newest version inside."""
        return self.high


@dataclass(frozen=True, slots=True)
class ClassicCheckpoint:
    """``<version>.checkpoint.parquet``: V1 or V2, which only its content shows."""

    version: int


@dataclass(frozen=True, slots=True)
class MultiPartCheckpoint:
    """``<version>.checkpoint.<part>.<parts>.parquet``: usable only when every part is there."""

    version: int
    part: int
    """From 1."""
    parts: int


@dataclass(frozen=True, slots=True)
class V2Checkpoint:
    """``<version>.checkpoint.<uuid>.{json,parquet}``."""

    version: int


@dataclass(frozen=True, slots=True)
class ChecksumFile:
    """``<version>.crc``: totals of one version, a hint for validation."""

    version: int


LogName: TypeAlias = (
    CommitFile
    | CompactedFile
    | ClassicCheckpoint
    | MultiPartCheckpoint
    | V2Checkpoint
    | ChecksumFile
)
"""Closed union: ``match`` over it ends in ``assert_never``."""

# 20 digits is what writers produce and the only width whose text order is the number's order.
_V = r"(?P<version>[0-9]{20})"
_COMMIT = re.compile(rf"{_V}\.json")
_STAGED = re.compile(rf"{_V}\.[0-9A-Za-z_-]{{1,100}}\.json")
_CHECKSUM = re.compile(rf"{_V}\.crc")
_COMPACTED = re.compile(r"(?P<low>[0-9]{20})\.(?P<high>[0-9]{20})\.compacted\.json")
_CLASSIC = re.compile(rf"{_V}\.checkpoint\.parquet")
_MULTI_PART = re.compile(
    rf"{_V}\.checkpoint\.(?P<part>[0-9]{{10}})\.(?P<parts>[0-9]{{10}})\.parquet"
)
_V2 = re.compile(
    rf"{_V}\.checkpoint\."
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\.(?:json|parquet)"
)


def parse_log_name(name: str) -> LogName | None:
    """Return the kind of a file directly in ``_delta_log`` by its name.

    >>> parse_log_name("00000000000000000042.json")
    CommitFile(version=42)
    >>> parse_log_name("_last_checkpoint") is None
    True
    """
    found = _parse_name(name)
    return found if found is not None and found.version <= VERSION_MAX else None


def _parse_name(name: str) -> LogName | None:
    if match := _COMMIT.fullmatch(name):
        return CommitFile(int(match["version"]))
    if match := _CLASSIC.fullmatch(name):
        return ClassicCheckpoint(int(match["version"]))
    if match := _CHECKSUM.fullmatch(name):
        return ChecksumFile(int(match["version"]))
    if match := _V2.fullmatch(name):
        return V2Checkpoint(int(match["version"]))
    if match := _MULTI_PART.fullmatch(name):
        version, part, parts = map(int, match.groups())
        return MultiPartCheckpoint(version, part, parts) if 1 <= part <= parts else None
    if match := _COMPACTED.fullmatch(name):
        low, high = map(int, match.groups())
        return CompactedFile(low, high) if low < high else None
    return None


def version_prefix(version: int) -> str:
    """Return the 20 digits that all names of a version start with: a listing may start there."""
    if not 0 <= version <= VERSION_MAX:
        raise ValueError(f"a table version is between 0 and {VERSION_MAX}, not {version}")
    return f"{version:020d}"


def commit_name(version: int) -> str:
    """Return the name of the commit file.

    >>> commit_name(42)
    '00000000000000000042.json'
    """
    return f"{version_prefix(version)}.json"


def classic_checkpoint_name(version: int) -> str:
    """Return the name of the checkpoint in one Parquet file."""
    return f"{version_prefix(version)}.checkpoint.parquet"


def v2_checkpoint_name(version: int, uuid: str) -> str:
    """Return the name of the JSON top file of a V2 checkpoint.

    >>> v2_checkpoint_name(3, "80a083e8-7026-4e79-81be-64bd76c43a11")
    '00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json'
    """
    return f"{version_prefix(version)}.checkpoint.{uuid}.json"


def staged_name(version: int, unique: str) -> str:
    """Return the name of a staged commit file; ``unique`` is a UUID.

    >>> staged_name(7, "80a083e8-7026-4e79-81be-64bd76c43a11")
    '00000000000000000007.80a083e8-7026-4e79-81be-64bd76c43a11.json'
    """
    return f"{version_prefix(version)}.{unique}.json"


def staged_version(name: str) -> int | None:
    """Return the version of a staged commit file by its name; None if it is no such name.

    >>> staged_version("00000000000000000007.80a083e8.json"), staged_version("../7.x.json")
    (7, None)
    """
    match = _STAGED.fullmatch(name)
    version = None if match is None else int(match["version"])
    return version if version is not None and version <= VERSION_MAX else None


def log_path(name: str) -> str:
    """Return the path of a log file relative to the table root.

    >>> log_path(commit_name(0))
    '_delta_log/00000000000000000000.json'
    """
    return f"{LOG_DIRECTORY}/{name}"
