"""The protocol of a new table, of a changed table, and of one that a user upgrades.

A protocol lists no more features than the table needs. It gains features by use or by an upgrade,
and loses one only when a user drops it. The conditions for dropping a feature are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import (
    FEATURES,
    FEATURES_BY_NAME,
    READER_VERSION_MAX,
    WRITER_VERSION_MAX,
    Enablement,
    Feature,
)
from puredelta.protocol.features.properties import FEATURE_PREFIX, TableProperties
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.types import StructType

DEFAULT_PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
"""The protocol of a new table without special needs (C-54)."""

_PROTOCOL_KEYS = frozenset(
    {"delta.minReaderVersion", "delta.minWriterVersion", "delta.ignoreProtocolDefaults"}
)


def protocol_for_new_table(schema: StructType, configuration: Mapping[str, str]) -> Protocol:
    """Return the weakest protocol that supports what schema and properties use (X-55).

    ``configuration`` may have ``delta.feature.<name>=supported`` and
    ``delta.minReaderVersion``/``delta.minWriterVersion``; `stored_configuration` removes these
    before the rest is stored.
    """
    properties = TableProperties.of(configuration)
    needed = {feature_named(name) for name in properties.requested_features}
    needed |= {f.name for f in _enabled_by_use(properties, schema, needed)}
    names = supported_features(_requested_versions(configuration)) | _closure(needed)
    return normalized(listing_protocol(names))


def _enabled_by_use(
    properties: TableProperties, schema: StructType, supported: AbstractSet[str]
) -> tuple[Feature, ...]:
    """Return the features that are in use and not ``supported``.

    A preview stands in for its feature: older clients of the table know the preview alone.
    """
    return tuple(
        f
        for f in FEATURES
        if f.enabled_by is not Enablement.NAME
        and supported.isdisjoint((f.name, f"{f.name}-preview"))
        and (f.enabling or f.used)(properties, schema)
    )


def stored_configuration(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties without those that only set the protocol."""
    return {
        key: value
        for key, value in configuration.items()
        if key not in _PROTOCOL_KEYS and not key.startswith(FEATURE_PREFIX)
    }


def required_protocol(
    protocol: Protocol, schema: StructType, properties: TableProperties
) -> Protocol:
    """Return ``protocol`` with the features that a changed schema or property needs.

    If the result differs, a ``protocol`` action must be committed.

    Raises:
        InvalidRequestError: a new column type needs a feature that locks out older readers,
            which users must request (DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT).
    """
    missing = _enabled_by_use(properties, schema, supported_features(protocol))
    if manual := [f for f in missing if f.enabled_by is Enablement.USE_IN_NEW_TABLE]:
        listed = "; ".join(f"{f.name} ({', '.join(f.used(properties, schema))})" for f in manual)
        raise InvalidRequestError(
            Message.FEATURES_REQUIRE_MANUAL_ENABLEMENT,
            listed=listed,
            properties=", ".join(f"'delta.feature.{f.name}' = 'supported'" for f in manual),
            features=tuple(f.name for f in manual),
        )
    return with_features(protocol, (f.name for f in missing))


def with_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """Return the protocol with further features, and the features that these require.

    No feature is removed, and no other feature is added: legacy versions are kept only if they
    imply exactly the wanted features, as in delta-spark.
    """
    supported = supported_features(protocol)
    missing = _closure(names) - supported
    if not missing:
        return protocol
    listing = listing_protocol(supported | missing, protocol.min_reader_version)
    return listing if protocol.writer_features is not None else normalized(listing)


def listing_protocol(names: frozenset[str], reader_version: int = 1) -> Protocol:
    """Return a protocol at writer version 7 that lists exactly these features.

    The reader version becomes 3 only for a reader feature without a legacy version: column
    mapping alone needs reader version 2.
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
    """Return a protocol without feature lists, if its versions alone mean exactly the same.

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
    """Return the canonical name of a feature; delta-spark stores such keys in lower case.

    Raises:
        InvalidRequestError: there is no such feature.
    """
    for feature in FEATURES:
        if feature.name.lower() == requested.lower():
            return feature.name
    raise InvalidRequestError(
        Message.INVALID_TABLE_PROPERTY_FEATURE,
        feature_prefix=FEATURE_PREFIX,
        requested=requested,
        property=FEATURE_PREFIX + requested,
    )


def _requested_versions(configuration: Mapping[str, str]) -> Protocol:
    def version(key: str, default: int, highest: int) -> int:
        text = configuration.get(key, str(default))
        if text not in {str(v) for v in range(1, highest + 1)}:
            raise InvalidRequestError(
                Message.INVALID_TABLE_PROPERTY_VERSION_RANGE,
                text=text,
                highest=highest,
                property=key,
            )
        return int(text)

    reader = version("delta.minReaderVersion", 1, READER_VERSION_MAX)
    writer = version("delta.minWriterVersion", 2, WRITER_VERSION_MAX)
    if reader == READER_VERSION_MAX and "delta.minWriterVersion" not in configuration:
        return DEFAULT_PROTOCOL  # reader version 3 alone implies no feature
    writer = WRITER_VERSION_MAX if reader == READER_VERSION_MAX else writer
    if writer < WRITER_VERSION_MAX:
        return Protocol(min_reader_version=reader, min_writer_version=writer)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=frozenset() if reader == READER_VERSION_MAX else None,
        writer_features=frozenset(),
    )


def upgraded(protocol: Protocol, *, reader: int, writer: int) -> Protocol:
    """Return the protocol that also supports the features of a pair of versions.

    Raises:
        InvalidRequestError: a version does not exist (INVALID_TABLE_PROPERTY), or reader
            version 3 comes without writer version 7 (READ_FEATURE_PROTOCOL_REQUIRES_WRITE).
    """
    _require_version("delta.minReaderVersion", reader, READER_VERSION_MAX)
    _require_version("delta.minWriterVersion", writer, WRITER_VERSION_MAX)
    if reader == READER_VERSION_MAX and writer < WRITER_VERSION_MAX:
        raise InvalidRequestError(
            Message.READ_FEATURE_PROTOCOL_REQUIRES_WRITE_UPGRADE,
            writer_version_max=WRITER_VERSION_MAX,
            reader=reader,
            writer=writer,
        )
    return with_features(protocol, _implied(reader, writer))


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """Return the weakest protocol without one feature.

    >>> legacy = Protocol(min_reader_version=1, min_writer_version=3)
    >>> without_feature(legacy, "checkConstraints").min_writer_version
    2
    """
    return normalized(listing_protocol(supported_features(protocol) - {name}))


def dependents(protocol: Protocol, name: str) -> tuple[str, ...]:
    """Return the supported features that require a feature."""
    supported = supported_features(protocol)
    return tuple(f.name for f in FEATURES if name in f.requires and f.name in supported)


def _implied(reader: int, writer: int) -> frozenset[str]:
    """Return the features that versions alone imply; writer version 7 implies none."""
    if writer == WRITER_VERSION_MAX:
        return frozenset()
    return supported_features(Protocol(min_reader_version=reader, min_writer_version=writer))


def _require_version(key: str, version: int, highest: int) -> None:
    if not 1 <= version <= highest:
        raise InvalidRequestError(
            Message.INVALID_TABLE_PROPERTY_VERSION,
            versions=", ".join(map(str, range(1, highest + 1))),
            property=key,
            value=version,
        )
