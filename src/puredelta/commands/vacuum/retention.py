"""How long VACUUM keeps files that are not needed any more, and the shortest time it accepts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.session.delta_conf import VACUUM_RETENTION_CHECK


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention time of one VACUUM."""

    specified: timedelta | None
    """What the caller asked for; None where the table decides."""
    default: timedelta
    """``delta.deletedFileRetentionDuration``."""
    check_enabled: bool

    @property
    def effective(self) -> timedelta:
        """How old a file has to be to go."""
        return self.default if self.specified is None else self.specified


def resolve_retention(
    hours: float | None, *, default: timedelta, check_enabled: bool, ignore_shorter: bool
) -> Retention:
    """Decide on a retention time; hours are rounded to whole ones, as in delta-spark.

    ``ignore_shorter`` is delta-spark's rule: a time shorter than the table's own does not
    count, but for 0, which means all that is not needed now. A longer one counts always.

    Raises:
        InvalidRequestError: it is negative (VACUUM_RETENTION_PERIOD_NEGATIVE), or shorter
            than the table's while the check is on (VACUUM_RETENTION_PERIOD_TOO_SHORT).
    """
    if hours is not None and hours < 0:
        raise InvalidRequestError(
            f"Retention period for Vacuum can't be less than 0 hours, but is {hours}.",
            code=ErrorCode.VACUUM_RETENTION_PERIOD_NEGATIVE,
            hours=hours,
        )
    specified = None if hours is None else timedelta(hours=math.floor(hours + 0.5))
    if ignore_shorter and specified is not None and timedelta() < specified < default:
        specified = None
    if check_enabled and specified is not None and specified < default:
        least = math.ceil(default / timedelta(hours=1))
        raise InvalidRequestError(
            "The specified VACUUM retention period is too low and may corrupt this Delta table if "
            "any writes are in progress. If no operations (insert, upsert, delete, optimize) are "
            f"running, you can disable this safety check by setting: "
            f"{VACUUM_RETENTION_CHECK.key} = false. "
            f"Otherwise, use a retention period of at least {least} hours.",
            code=ErrorCode.VACUUM_RETENTION_PERIOD_TOO_SHORT,
            hours=hours,
            least_hours=least,
        )
    return Retention(specified=specified, default=default, check_enabled=check_enabled)
