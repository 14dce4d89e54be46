"""What errors of object stores become."""

from __future__ import annotations

import pytest
from obstore import exceptions

from puredelta.store.base import UnknownOutcomeError
from puredelta.store.location import ObjectAccess
from puredelta.store.object_client import translated

ACCESS = ObjectAccess(url="s3://bucket", config={"secret_access_key": "hidden-key"})


def raised(text: str, *, writes: bool) -> Exception:
    with (
        pytest.raises(OSError, match="s3://bucket/t") as caught,
        translated(ACCESS, "s3://bucket/t", writes=writes),
    ):
        raise exceptions.GenericError(text)
    return caught.value


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest/api/token",
        "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts",
    ],
)
def test_a_machine_without_credentials_is_told_so(place: str, writes: bool) -> None:
    """The request was never sent, so that a write is known not to have happened."""
    error = raised(f"Error performing PUT {place}: 403 Forbidden", writes=writes)
    assert isinstance(error, PermissionError)
    assert "fs.s3a.access.key" in str(error)


def test_other_failures_of_a_write_leave_its_outcome_open() -> None:
    error = raised("connection closed, key hidden-key", writes=True)
    assert isinstance(error, UnknownOutcomeError)
    assert "hidden-key" not in str(error)
