"""Whether a location can be reached, read and written."""

from __future__ import annotations

import os
from collections.abc import Iterator

from puredelta.errors import DeltaError
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY


def location_findings(log: TableLog) -> Iterator[Finding]:
    """Say whether the log at a location can be listed, and on a disk whether it can be written.

    Nothing is written, so what an object store allows to write is not known.
    """
    try:
        next(iter(log.store.list_from(LOG_DIRECTORY)), None)
    except (DeltaError, OSError) as error:
        yield Finding(
            check="storage",
            severity=Severity.ERROR,
            message=f"{log.root_uri} cannot be listed: {error}",
            mend="Check the path, the credentials and the network; docs/storage.md lists the "
            "settings.",
        )
        return
    yield Finding(check="storage", severity=Severity.OK, message=f"{log.root_uri} can be read.")
    scheme, _, path = log.root_uri.partition(":")
    directory = f"{path}/{LOG_DIRECTORY}"
    if scheme == "file" and os.path.isdir(directory):  # noqa: PTH112 - a URI's path
        if os.access(directory, os.W_OK) and os.access(path, os.W_OK):
            yield Finding(
                check="permissions", severity=Severity.OK, message="The table can be written."
            )
        else:
            yield Finding(
                check="permissions",
                severity=Severity.WARNING,
                message=f"This user may read {path}, but not write it.",
                mend=f"Give the user write access to {path} and {directory}.",
            )
