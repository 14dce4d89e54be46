"""Write ``errors.md`` from error codes and ``errors.txt``; ``--check`` compares."""

from __future__ import annotations

import sys
from pathlib import Path

from puredelta.error_codes import ErrorCode

HERE = Path(__file__).resolve().parent
PAGE = HERE / "errors.md"
_HEAD = """# Errors

Every error says what happened in its class, and what to do in its message. `getCondition()` is the
class, `getSqlState()` the SQLSTATE, `getMessageParameters()` the values. Catch by what there is to
do (`puredelta.errors`):

| exception | what to do |
| --- | --- |
| `ConflictError` | another writer won: run the statement again on the new version |
| `UnsupportedError` | the table needs something that is not implemented here |
| `InvalidRequestError` (a `ValueError`) | change the request |
| `TableNotFoundError` (a `LookupError`) | there is no table here |
| `CorruptTableError` | the log or a file breaks the protocol |
| `CommitUnknownError` | the storage did not answer: look at the history first |
| `CatalogError` | the log is written and stands, the catalog's entry does not follow |

The classes and SQLSTATEs are delta-spark's and Spark's. (`python docs/generate_errors.py` writes
this page from `errors.txt`.)

"""


def sentences() -> dict[str, tuple[str, str]]:
    """The cause and the mend of each code, by its name."""
    found = {}
    for line in (HERE / "errors.txt").read_text(encoding="utf-8").splitlines():
        name, cause, mend = (part.strip() for part in line.split(" | "))
        found[name] = (cause, mend)
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
            cause, mend = known[code.name]
            entry = (
                f"`{code.error_class}` (SQLSTATE {code.sqlstate})\n:   {cause} **Mend:** {mend}\n"
            )
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
