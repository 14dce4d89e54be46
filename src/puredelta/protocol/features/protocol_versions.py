"""Support of a table by its protocol: for reading, appending, merging and the other capabilities.

The answers come from the rows of `puredelta.protocol.features.feature_registry`. The rules here are
those of the section "Table Features": versions, lists of names, and the features that versions
imply.
"""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.errors import CorruptTableError, Message, UnsupportedError
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import (
    FEATURES,
    FEATURES_BY_NAME,
    READER_VERSION_MAX,
    WRITER_VERSION_MAX,
    Capability,
    Feature,
    Level,
)
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.schema.types import StructType


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Return the names of all features the protocol supports, listed or implied (X-50).

    >>> sorted(supported_features(Protocol(min_reader_version=1, min_writer_version=3)))
    ['appendOnly', 'checkConstraints', 'invariants']
    """
    if protocol.min_writer_version >= WRITER_VERSION_MAX:
        return (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())
    return frozenset(f.name for f in FEATURES if _is_implied(f, protocol))


def supports(protocol: Protocol, name: str) -> bool:
    """Return whether the protocol supports a feature."""
    return name in supported_features(protocol)


def active_features(
    protocol: Protocol, properties: TableProperties, schema: StructType
) -> Mapping[str, tuple[str, ...]]:
    """Return the supported features that are in use, each with what uses it."""
    names = supported_features(protocol)
    used = {f.name: f.used(properties, schema) for f in FEATURES if f.name in names}
    return {name: what for name, what in used.items() if what}


def require_consistent(protocol: Protocol) -> None:
    """Check that versions and lists of a protocol fit.

    Raises:
        CorruptTableError: reader version 3 without writer version 7
            (DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE), or a list that the version
            does not allow, or no list where it requires one (DELTA_LOG_CORRUPTED).
    """
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader >= READER_VERSION_MAX and writer < WRITER_VERSION_MAX:
        raise CorruptTableError(
            Message.READ_FEATURE_PROTOCOL_REQUIRES_WRITE_TABLE,
            reader=reader,
            writer_version_max=WRITER_VERSION_MAX,
            writer=writer,
        )
    for kind, version, listing_version, names in (
        ("reader", reader, READER_VERSION_MAX, protocol.reader_features),
        ("writer", writer, WRITER_VERSION_MAX, protocol.writer_features),
    ):
        if version < 1:
            raise _corrupt(f"{kind} version {version} does not exist")
        if version == listing_version and names is None:
            raise _corrupt(f"{kind} version {version} demands the list {kind}Features")
        if version < listing_version and names is not None:
            raise _corrupt(f"{kind} version {version} allows no list {kind}Features")


def require_capability(
    capability: Capability, protocol: Protocol, properties: TableProperties, schema: StructType
) -> None:
    """Require that the features of a table allow a capability (X-51, X-53, X-56).

    Raises:
        UnsupportedError: the version is too new (DELTA_INVALID_PROTOCOL_VERSION), or
            features are unknown, not implemented, or active and not implemented
            (DELTA_UNSUPPORTED_FEATURES_FOR_READ, ..._FOR_WRITE). The message names
            each feature, the reason, and the property or column that makes it active.
        CorruptTableError: as `require_consistent`.
    """
    _require_versions(capability, protocol)
    require_consistent(protocol)
    names = (
        protocol.reader_features or _implied_reader_features(protocol)
        if capability is Capability.READ
        else supported_features(protocol)
    )
    problems = {
        name: problem
        for name in sorted(names)
        if (problem := _problem(name, capability, properties, schema)) is not None
    }
    if problems:
        raise _refused(capability, problems)


def _problem(
    name: str, capability: Capability, properties: TableProperties, schema: StructType
) -> str | None:
    feature = FEATURES_BY_NAME.get(name)
    if feature is None:
        return "unknown to this version of puredelta"
    support = feature.support(capability)
    match support.level:
        case Level.SUPPORTED:
            return None
        case Level.REFUSED:
            return support.reason
        case Level.WHEN_INACTIVE:
            what = feature.used(properties, schema)
            return f"used by {', '.join(what)}: {support.reason}" if what else None


def _refused(capability: Capability, problems: Mapping[str, str]) -> UnsupportedError:
    reading = capability is Capability.READ
    listed = "; ".join(f"{name} ({problem})" for name, problem in problems.items())
    return UnsupportedError(
        Message.UNSUPPORTED_FEATURES_FOR_READ
        if reading
        else Message.UNSUPPORTED_FEATURES_FOR_WRITE,
        action=capability.value,
        noun="features" if len(problems) > 1 else "feature",
        listed=listed,
        features=tuple(problems),
    )


def _require_versions(capability: Capability, protocol: Protocol) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    too_new = reader > READER_VERSION_MAX or (
        capability is not Capability.READ and writer > WRITER_VERSION_MAX
    )
    if too_new:
        raise UnsupportedError(
            Message.INVALID_PROTOCOL_VERSION,
            reader_version_max=READER_VERSION_MAX,
            writer_version_max=WRITER_VERSION_MAX,
            reader_version=reader,
            writer_version=writer,
        )


def _is_implied(feature: Feature, protocol: Protocol) -> bool:
    if feature.legacy is None:
        return False
    reader, writer = feature.legacy
    return protocol.min_reader_version >= reader and protocol.min_writer_version >= writer


def _implied_reader_features(protocol: Protocol) -> frozenset[str]:
    """Return the reader features that the reader version implies, whatever the writer version."""
    return frozenset(
        f.name
        for f in FEATURES
        if f.reader and f.legacy is not None and protocol.min_reader_version >= f.legacy[0]
    )


def _corrupt(problem: str) -> CorruptTableError:
    return CorruptTableError(Message.LOG_CORRUPTED_PROTOCOL, problem=problem)
