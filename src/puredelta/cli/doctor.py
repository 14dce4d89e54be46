"""``puredelta doctor``: checks of this machine, a table, a catalog or a script."""

from __future__ import annotations

import importlib
from pathlib import Path

from puredelta.cli.log_commands import open_log
from puredelta.cli.output import ExitCode
from puredelta.cli.parse import Context
from puredelta.errors import InvalidRequestError, Message
from puredelta.inspection.catalogs import catalog_findings
from puredelta.inspection.environment import environment_findings, location_findings
from puredelta.inspection.findings import Finding, Severity, worst
from puredelta.inspection.migration import script_findings
from puredelta.inspection.table_checks import table_findings
from puredelta.store.registry import NO_SESSION

_DEEP = "puredelta.inspection.damage.deep"
"""Imported for ``--deep`` alone: it needs what writes commits."""


def doctor(
    context: Context,
    *,
    table: str | None,
    migrate: Path | None,
    catalog: str | None,
    resume: Path | None = None,
    **switches: bool,
) -> ExitCode:
    """Run the requested checks; without any, those of the environment.

    The switches are ``environment``, ``list_files`` and ``deep``.
    """
    found: list[Finding] = []
    if migrate is not None:
        found += script_findings(migrate)
    if catalog is not None:
        storage = NO_SESSION.with_options(context.storage_options)
        found += catalog_findings(context.conf, catalog, storage)
    if table is not None:
        log = open_log(context, table)
        reached = list(location_findings(log))
        found += reached
        if worst(reached) is not Severity.ERROR:
            found += table_findings(log, lists_files=switches["list_files"])
            if switches["deep"]:
                found += importlib.import_module(_DEEP).deep_findings(
                    log, progress=context.output.note, resume=resume
                )
    elif switches["deep"]:
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_DEEP_WITHOUT_TABLE)
    if switches["environment"] or (table is None and migrate is None and catalog is None):
        found += environment_findings()
    context.output.findings(found)
    return ExitCode.FINDINGS if worst(found) is Severity.ERROR else ExitCode.DONE
