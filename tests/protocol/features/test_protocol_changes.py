"""From one protocol to another."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.protocol_changes import dependents, upgraded, without_feature
from puredelta.protocol.features.protocol_versions import supported_features


def legacy(reader: int, writer: int) -> Protocol:
    return Protocol(min_reader_version=reader, min_writer_version=writer)


LISTING = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=frozenset({"deletionVectors", "appendOnly", "invariants"}),
)


def test_versions_stand_for_the_features_they_imply() -> None:
    assert upgraded(legacy(1, 2), reader=1, writer=3) == legacy(1, 3)
    both = upgraded(LISTING, reader=1, writer=3)
    assert supported_features(both) == supported_features(LISTING) | {"checkConstraints"}
    assert upgraded(LISTING, reader=1, writer=1) == LISTING
    assert upgraded(legacy(1, 3), reader=1, writer=2) == legacy(1, 3)
    assert upgraded(legacy(1, 2), reader=1, writer=7) == legacy(1, 2)


@pytest.mark.parametrize(
    ("before", "reader", "writer", "code"),
    [
        (legacy(1, 2), 3, 5, ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE),
        (legacy(1, 2), 4, 9, ErrorCode.INVALID_TABLE_PROPERTY),
    ],
)
def test_versions_that_are_none_are_refused(
    before: Protocol, reader: int, writer: int, code: ErrorCode
) -> None:
    with pytest.raises(InvalidRequestError) as error:
        upgraded(before, reader=reader, writer=writer)
    assert error.value.code is code


def test_a_protocol_without_a_feature_is_as_weak_as_it_can_be() -> None:
    assert without_feature(LISTING, "deletionVectors") == legacy(1, 2)
    assert without_feature(legacy(1, 3), "checkConstraints") == legacy(1, 2)
    rest = without_feature(legacy(1, 4), "checkConstraints")
    assert (rest.min_reader_version, rest.min_writer_version) == (1, 7)
    assert "changeDataFeed" in supported_features(rest)


def test_features_that_need_another_are_known() -> None:
    listing = Protocol(
        min_reader_version=1,
        min_writer_version=7,
        writer_features=frozenset({"rowTracking", "domainMetadata"}),
    )
    assert dependents(listing, "domainMetadata") == ("rowTracking",)
