"""Write ``errors.md`` from the table of error codes; ``--check`` compares."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import TextWrapper

from puredelta.error_table import ErrorCode

HERE = Path(__file__).resolve().parent
PAGE = HERE / "errors.md"
_DEFINITION = TextWrapper(
    120,
    initial_indent=":   ",
    subsequent_indent="    ",
    break_long_words=False,
    break_on_hyphens=False,
)
_HEAD = """# Errors

The class of an error names the cause, its message the next step. `getCondition()` returns the
class, `getSqlState()` the SQLSTATE, `getMessageParameters()` the values. Catch errors by the next
step (`puredelta.errors`):

| exception | next step or cause |
| --- | --- |
| `ConflictError` | another writer won: run the statement again |
| `UnsupportedError` | the table needs an unsupported feature |
| `InvalidRequestError` (a `ValueError`) | change the request |
| `TableNotFoundError` (a `LookupError`) | there is no table here |
| `CorruptTableError` | the log or a file breaks the protocol |
| `StorageAccessError` (a `PermissionError`) | the storage refuses this user or key: grant access |
| `CommitUnknownError` | the storage did not answer: check the history first |
| `CatalogError` | the log is written, the catalog entry is not |
| `CatalogRequestError` (`puredelta.catalogs.failures`) | a catalog refused or did not answer |

The classes and SQLSTATEs are delta-spark's and Spark's. (`python docs/generate_errors.py` writes
this page from `puredelta.error_table`.)

"""


def page() -> str:
    """The page as it should be, by error class."""
    entries = []
    for code in sorted(ErrorCode, key=lambda code: code.error_class):
        body = _DEFINITION.fill(f"{code.cause} **Fix:** {code.next_step}")
        entries.append(f"`{code.error_class}` (SQLSTATE {code.sqlstate})\n{body}\n")
    return _HEAD + "\n".join(entries)


def main() -> int:
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
