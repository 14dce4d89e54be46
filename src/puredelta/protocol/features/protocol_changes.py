"""From one protocol to another: upgrades that a user asks for, and features that are dropped.

A protocol only ever gains features by an upgrade; versions stand for the features they imply
(section "Table Features"), so asking for lower versions changes nothing. What has to be true
of the table before a feature may go is not known here.
"""

from __future__ import annotations

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import (
    FEATURES,
    READER_VERSION_MAX,
    WRITER_VERSION_MAX,
)
from puredelta.protocol.features.protocol_versions import (
    listing_protocol,
    normalized,
    supported_features,
    with_features,
)


def upgraded(protocol: Protocol, *, reader: int, writer: int) -> Protocol:
    """Return the protocol that also supports what a pair of versions stands for.

    Raises:
        InvalidRequestError: a version does not exist (INVALID_TABLE_PROPERTY), or reader
            version 3 comes without writer version 7 (READ_FEATURE_PROTOCOL_REQUIRES_WRITE).
    """
    _require_version("delta.minReaderVersion", reader, READER_VERSION_MAX)
    _require_version("delta.minWriterVersion", writer, WRITER_VERSION_MAX)
    if reader == READER_VERSION_MAX and writer < WRITER_VERSION_MAX:
        raise InvalidRequestError(
            "Unable to upgrade only the reader protocol version to use table features. Writer "
            f"protocol version must be at least {WRITER_VERSION_MAX} to proceed.",
            code=ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE,
            reader=reader,
            writer=writer,
        )
    return with_features(protocol, _implied(reader, writer))


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """Return the protocol without one feature, in its weakest form.

    >>> legacy = Protocol(min_reader_version=1, min_writer_version=3)
    >>> without_feature(legacy, "checkConstraints").min_writer_version
    2
    """
    return normalized(listing_protocol(supported_features(protocol) - {name}))


def dependents(protocol: Protocol, name: str) -> tuple[str, ...]:
    """Return the supported features that cannot be without another one."""
    supported = supported_features(protocol)
    return tuple(f.name for f in FEATURES if name in f.requires and f.name in supported)


def _implied(reader: int, writer: int) -> frozenset[str]:
    """Return what versions alone stand for; 7 stands for nothing by itself."""
    if writer == WRITER_VERSION_MAX:
        return frozenset()
    return supported_features(Protocol(min_reader_version=reader, min_writer_version=writer))


def _require_version(key: str, version: int, highest: int) -> None:
    if not 1 <= version <= highest:
        raise InvalidRequestError(
            f"The table property {key!r} cannot be '{version}': it needs to be one of "
            f"{', '.join(map(str, range(1, highest + 1)))}.",
            code=ErrorCode.INVALID_TABLE_PROPERTY,
            property=key,
            value=version,
        )
