"""Write ``errors.md`` from error codes and ``errors.txt``; ``--check`` compares."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import TextWrapper

from puredelta.error_codes import ErrorCode

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
this page from `errors.txt`.)

"""


def sentences() -> dict[str, tuple[str, str]]:
    """The cause and the fix of each code, by its name."""
    found = {}
    for line in (HERE / "errors.txt").read_text(encoding="utf-8").splitlines():
        name, cause, fix = (part.strip() for part in line.split(" | "))
        found[name] = (cause, fix)
    return found


def problems() -> list[str]:
    """Codes without sentences, and sentences without a code."""
    names, written = {code.name for code in ErrorCode}, set(sentences())
    return [
        *(f"{name} has no line in docs/errors.txt" for name in sorted(names - written)),
        *(f"{name} in docs/errors.txt is no code" for name in sorted(written - names)),
    ]


def page() -> str:
    """The page as it should be, by error class."""
    known = sentences()
    entries = {}
    for code in sorted(ErrorCode, key=lambda code: code.error_class):
        if code.name in known:
            cause, fix = known[code.name]
            body = _DEFINITION.fill(f"{cause} **Fix:** {fix}")
            entry = f"`{code.error_class}` (SQLSTATE {code.sqlstate})\n{body}\n"
            entries[code.error_class, code.name] = entry
    return _HEAD + "\n".join(entries.values())


def main() -> int:
    if found := problems():
        sys.stderr.write("\n".join(found) + "\n")
        return 1
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
