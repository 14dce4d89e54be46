"""Directories under a table root that jobs of this library make for themselves, by their names."""

from __future__ import annotations

import re

STAGING_PREFIX = "_puredelta_staging-"
"""Of directories of a statement's source: hidden, and recognisable when a driver died."""
_JOB_DIRECTORY = re.compile(r"(?:[A-Za-z0-9]+-)?job-\d{8}-\d{6}-[0-9a-f]{12}")


def is_job_directory(name: str) -> bool:
    """Return whether a directory of a table is one that a job's new files were written to.

    >>> is_job_directory("job-20250131-120000-0123456789ab"), is_job_directory("day=1")
    (True, False)
    """
    return _JOB_DIRECTORY.fullmatch(name) is not None
