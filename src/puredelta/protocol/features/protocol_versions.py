"""Which tables may be read, written, merged into, and which protocol a table needs.

The answers come from the rows of `puredelta.protocol.features.feature_registry`; the rules here are
those of the section "Table Features": versions, lists of names, and what they imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from puredelta.errors import (
    CorruptTableError,
    ErrorCode,
    InvalidRequestError,
    UnsupportedError,
)
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import (
    FEATURES,
    FEATURES_BY_NAME,
    READER_VERSION_MAX,
    WRITER_VERSION_MAX,
    Capability,
    Enablement,
    Feature,
    Level,
)
from puredelta.protocol.features.properties import FEATURE_PREFIX, TableProperties
from puredelta.protocol.schema.types import StructType

DEFAULT_PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
"""What a new table gets that needs nothing special (C-54)."""

_PROTOCOL_KEYS = frozenset(
    {"delta.minReaderVersion", "delta.minWriterVersion", "delta.ignoreProtocolDefaults"}
)


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Return the names of all features the protocol supports, listed or implied (X-50).

    >>> sorted(supported_features(Protocol(min_reader_version=1, min_writer_version=3)))
    ['appendOnly', 'checkConstraints', 'invariants']
    """
    if protocol.min_writer_version >= WRITER_VERSION_MAX:
        return (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())
    return frozenset(f.name for f in FEATURES if _is_implied(f, protocol))


def supports(protocol: Protocol, name: str) -> bool:
    """Tell whether the protocol supports one feature."""
    return name in supported_features(protocol)


def active_features(
    protocol: Protocol, properties: TableProperties, schema: StructType
) -> Mapping[str, tuple[str, ...]]:
    """Return the supported features something uses, each with what uses it."""
    names = supported_features(protocol)
    used = {f.name: f.used(properties, schema) for f in FEATURES if f.name in names}
    return {name: what for name, what in used.items() if what}


def require_consistent(protocol: Protocol) -> None:
    """Check that versions and lists of a protocol go together.

    Raises:
        CorruptTableError: reader version 3 without writer version 7
            (DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE), or lists where the versions
            allow none, or none where they demand them (DELTA_LOG_CORRUPTED).
    """
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader >= READER_VERSION_MAX and writer < WRITER_VERSION_MAX:
        raise CorruptTableError(
            f"The table's protocol has reader version {reader}, which needs writer version "
            f"{WRITER_VERSION_MAX}, but its writer version is {writer}.",
            code=ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE,
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
    """Refuse what a feature of the table does not let this library do (X-51, X-53, X-56).

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
    kind = "reader" if reading else "writer"
    return UnsupportedError(
        f"puredelta cannot {capability.value} this table because of its {kind} "
        f"feature{'s' if len(problems) > 1 else ''} {listed}.",
        code=ErrorCode.UNSUPPORTED_FEATURES_FOR_READ
        if reading
        else ErrorCode.UNSUPPORTED_FEATURES_FOR_WRITE,
        features=tuple(problems),
    )


def _require_versions(capability: Capability, protocol: Protocol) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    too_new = reader > READER_VERSION_MAX or (
        capability is not Capability.READ and writer > WRITER_VERSION_MAX
    )
    if too_new:
        raise UnsupportedError(
            f"The table needs reader version {reader} and writer version {writer}, but "
            f"puredelta supports reader versions up to {READER_VERSION_MAX} and writer "
            f"versions up to {WRITER_VERSION_MAX}.",
            code=ErrorCode.INVALID_PROTOCOL_VERSION,
            reader_version=reader,
            writer_version=writer,
        )


def _is_implied(feature: Feature, protocol: Protocol) -> bool:
    if feature.legacy is None:
        return False
    reader, writer = feature.legacy
    return protocol.min_reader_version >= reader and protocol.min_writer_version >= writer


def _implied_reader_features(protocol: Protocol) -> frozenset[str]:
    """Return what a reader version without a list implies; writer lists do not matter to it."""
    return frozenset(
        f.name
        for f in FEATURES
        if f.reader and f.legacy is not None and protocol.min_reader_version >= f.legacy[0]
    )


# --- protocols for new and changed tables ---------------------------------------------------


def protocol_for_new_table(schema: StructType, configuration: Mapping[str, str]) -> Protocol:
    """Return the protocol that supports what schema and properties use, and no more (X-55).

    ``configuration`` may hold ``delta.feature.<name>=supported`` and
    ``delta.minReaderVersion``/``delta.minWriterVersion``; `stored_configuration` drops
    those again before the rest becomes metadata.

    Raises:
        InvalidRequestError: a requested feature or version does not exist.
    """
    properties = TableProperties.of(configuration)
    needed = {f.name for f in _enabled_by_use(properties, schema)}
    needed |= {feature_named(name) for name in properties.requested_features}
    names = supported_features(_requested_versions(configuration)) | _closure(needed)
    return normalized(listing_protocol(names))


def _enabled_by_use(properties: TableProperties, schema: StructType) -> tuple[Feature, ...]:
    return tuple(
        f for f in FEATURES if f.enabled_by is not Enablement.NAME and f.used(properties, schema)
    )


def stored_configuration(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties without those that only shape the protocol."""
    return {
        key: value
        for key, value in configuration.items()
        if key not in _PROTOCOL_KEYS and not key.startswith(FEATURE_PREFIX)
    }


def required_protocol(
    protocol: Protocol, schema: StructType, properties: TableProperties
) -> Protocol:
    """Return ``protocol``, raised where a changed schema or property needs more of it.

    Compare with the old one to see whether a ``protocol`` action has to be committed.

    Raises:
        InvalidRequestError: a new column type would raise it so far that older readers
            are locked out, which the user has to ask for
            (DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT).
    """
    missing = [
        f for f in _enabled_by_use(properties, schema) if f.name not in supported_features(protocol)
    ]
    if manual := [f for f in missing if f.enabled_by is Enablement.USE_IN_NEW_TABLE]:
        listed = "; ".join(f"{f.name} ({', '.join(f.used(properties, schema))})" for f in manual)
        raise InvalidRequestError(
            "The changed schema needs table features that the table does not list and that "
            f"are not added unasked, because older readers could not open it any more: "
            f"{listed}. Enable them with ALTER TABLE ... SET TBLPROPERTIES "
            "('delta.feature.<name>' = 'supported') in an engine that can, or write to a "
            "new table.",
            code=ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT,
            features=tuple(f.name for f in manual),
        )
    return with_features(protocol, (f.name for f in missing))


def with_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """Return the protocol that supports these features, and what they require, as well.

    Never removes a feature, and never adds one that was not asked for: legacy versions
    are kept only where they imply exactly the wanted features, as in the reference.
    """
    supported = supported_features(protocol)
    missing = _closure(names) - supported
    if not missing:
        return protocol
    listing = listing_protocol(supported | missing, protocol.min_reader_version)
    return listing if protocol.writer_features is not None else normalized(listing)


def listing_protocol(names: frozenset[str], reader_version: int = 1) -> Protocol:
    """Return a protocol at writer version 7 that lists exactly these features.

    The reader version rises to 3 only for a reader feature that has no legacy version:
    column mapping alone is content with reader version 2.
    """
    readers = [f for f in map(FEATURES_BY_NAME.get, names) if f is not None and f.reader]
    needed = max((f.legacy[0] if f.legacy else READER_VERSION_MAX for f in readers), default=1)
    version = max(reader_version, needed)
    listed = frozenset(f.name for f in readers) if version == READER_VERSION_MAX else None
    return Protocol(
        min_reader_version=version,
        min_writer_version=WRITER_VERSION_MAX,
        reader_features=listed,
        writer_features=names,
    )


def normalized(protocol: Protocol) -> Protocol:
    """Return a protocol that lists features with versions alone where they say exactly the same.

    >>> normalized(listing_protocol(frozenset({"appendOnly", "invariants"}))).min_writer_version
    2
    """
    names = supported_features(protocol)
    versions = [feature.legacy for name in names if (feature := FEATURES_BY_NAME.get(name))]
    legacy = Protocol(
        min_reader_version=max((v[0] for v in versions if v), default=1),
        min_writer_version=max((v[1] for v in versions if v), default=1),
    )
    return legacy if supported_features(legacy) == names else protocol


def _closure(names: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(FEATURES_BY_NAME[name].requires)
    return frozenset(found)


def feature_named(requested: str) -> str:
    """Return a feature's own spelling: the reference stores such keys in lower case.

    Raises:
        InvalidRequestError: there is no such feature.
    """
    for feature in FEATURES:
        if feature.name.lower() == requested.lower():
            return feature.name
    raise InvalidRequestError(
        f"The table property '{FEATURE_PREFIX}{requested}' names no table feature that "
        "puredelta knows.",
        code=ErrorCode.INVALID_TABLE_PROPERTY,
        property=FEATURE_PREFIX + requested,
    )


def _requested_versions(configuration: Mapping[str, str]) -> Protocol:
    def version(key: str, default: int, highest: int) -> int:
        text = configuration.get(key, str(default))
        if text not in {str(v) for v in range(1, highest + 1)}:
            raise InvalidRequestError(
                f"The table property {key!r} cannot be {text!r}: it needs to be between 1 "
                f"and {highest}.",
                code=ErrorCode.INVALID_TABLE_PROPERTY,
                property=key,
            )
        return int(text)

    reader = version("delta.minReaderVersion", 1, READER_VERSION_MAX)
    writer = version("delta.minWriterVersion", 2, WRITER_VERSION_MAX)
    if reader == READER_VERSION_MAX and "delta.minWriterVersion" not in configuration:
        return DEFAULT_PROTOCOL  # it stands for no feature
    writer = WRITER_VERSION_MAX if reader == READER_VERSION_MAX else writer
    if writer < WRITER_VERSION_MAX:
        return Protocol(min_reader_version=reader, min_writer_version=writer)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=frozenset() if reader == READER_VERSION_MAX else None,
        writer_features=frozenset(),
    )


def _corrupt(problem: str) -> CorruptTableError:
    return CorruptTableError(
        f"The table's protocol action contradicts itself: {problem}.",
        code=ErrorCode.LOG_CORRUPTED,
    )
