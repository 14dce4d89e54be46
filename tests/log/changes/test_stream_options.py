"""What the options of a stream mean."""

from __future__ import annotations

import pytest

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.changes.stream_offsets import Admission, ReadLimits
from puredelta.log.changes.stream_options import StreamOptions


def parsed(**options: str) -> StreamOptions:
    return StreamOptions.parse(options.get, int)


def test_the_defaults() -> None:
    chosen = parsed()
    assert chosen.limits == ReadLimits(max_files=1000)
    assert chosen.settings.fails_on_data_loss
    assert not chosen.reads_changes
    assert chosen.settings.exclude is None


def test_sizes_have_units() -> None:
    assert parsed(maxBytesPerTrigger="10g").limits == ReadLimits(max_bytes=10 << 30)
    assert parsed(maxBytesPerTrigger="7").limits.max_bytes == 7
    assert parsed(maxBytesPerTrigger="3Kb").limits.max_bytes == 3 << 10
    both = parsed(maxBytesPerTrigger="1m", maxFilesPerTrigger="2").limits
    assert both == ReadLimits(max_files=2, max_bytes=1 << 20)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "-1"),
        ("maxFilesPerTrigger", "many"),
        ("maxBytesPerTrigger", "0"),
        ("maxBytesPerTrigger", "10 apples"),
        ("maxBytesPerTrigger", "1.5g"),
        ("excludeRegex", "("),
        ("failOnDataLoss", "no"),
        ("ignoreDeletes", "1"),
        ("startingVersion", "-1"),
    ],
)
def test_values_that_mean_nothing(name: str, value: str) -> None:
    with pytest.raises(DeltaError, match=name) as refused:
        parsed(**{name: value})
    assert refused.value.code is ErrorCode.INVALID_WRITE_OPTION


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("withEventTimeOrder", "true", ErrorCode.OPERATION_NOT_ALLOWED),
        ("versionAsOf", "1", ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS),
    ],
)
def test_options_that_cannot_be_followed(name: str, value: str, code: ErrorCode) -> None:
    with pytest.raises(DeltaError, match=name) as refused:
        parsed(**{name: value})
    assert refused.value.code is code
    assert not parsed(withEventTimeOrder="false").reads_changes


def test_a_batch_takes_a_file_at_least() -> None:
    small = Admission(ReadLimits(max_bytes=10))
    assert [small.admits(n) for n in (4, 5, 100, 1)] == [True, True, True, False]
    together = Admission(ReadLimits(max_files=3, max_bytes=10))
    assert together.admits_together([100, 100])
    assert not together.admits_together([1])
    fits = Admission(ReadLimits(max_files=3))
    assert [fits.admits_together([1] * n) for n in (2, 2, 0)] == [True, False, True]


def test_a_log_of_schemas() -> None:
    assert parsed().tracking is None
    parsed().require_untracked()
    chosen = parsed(
        schemaLocation="/c", allowSourceColumnDrop="Always", allowSourceColumnRename="3"
    )
    assert chosen.tracking is not None
    assert chosen.tracking.directory("id") == "/c/_schema_log_id"
    assert chosen.tracking.allowed == {
        "allowSourceColumnDrop": "always",
        "allowSourceColumnRename": "3",
    }
    with pytest.raises(DeltaError, match="schemaTrackingLocation") as refused:
        chosen.require_untracked()
    assert refused.value.code is ErrorCode.OPERATION_NOT_ALLOWED


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schemaTrackingLocation", " "),
        ("failOnDataLoss", "false"),
        ("allowSourceColumnRename", "true"),
        ("streamingSourceTrackingId", "a/../../../b"),
        ("streamingSourceTrackingId", ""),
    ],
)
def test_logs_of_schemas_that_cannot_be(name: str, value: str) -> None:
    with pytest.raises(DeltaError, match=name) as refused:
        parsed(**{"schemaTrackingLocation": "/c", name: value})
    assert refused.value.code is ErrorCode.INVALID_WRITE_OPTION
