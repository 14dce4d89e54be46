"""Write ``protocol-coverage.md`` from the table of features; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from puredelta.protocol.features.feature_registry import FEATURES, Capability, Feature

PAGE = Path(__file__).with_name("protocol-coverage.md")
INTRODUCTION = """\
# Protocol coverage

Generated from `src/puredelta/protocol/features/feature_registry.py`: change a row there, then run
`python docs/generate_protocol_coverage.py`. Names are those of delta-spark 4.4.0 and of the
[Delta protocol](https://github.com/delta-io/delta/blob/master/PROTOCOL.md) and its drafts.

*yes*: supported. *while inactive*: a table may list the feature while it is unused. *no*: refused
by name (`DELTA_UNSUPPORTED_FEATURES_FOR_READ` or `..._FOR_WRITE`), whether used or not. Features
that are not listed here are refused, too.
"""


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The whole page."""
    head = " | ".join(["feature", "kind", "legacy versions", *(c.name.lower() for c in Capability)])
    lines = [INTRODUCTION, f"| {head} |", "| " + " | ".join(["---"] * (3 + len(Capability))) + " |"]
    notes: list[str] = []
    lines += [row(feature, notes) for feature in FEATURES]
    return "\n".join([*lines, "", *(f"{n}. {note}" for n, note in enumerate(notes, 1))]) + "\n"


def row(feature: Feature, notes: list[str]) -> str:
    """One feature; new remarks are appended to ``notes``."""
    legacy = "" if feature.legacy is None else f"{feature.legacy[0]} / {feature.legacy[1]}"
    cells = [f"`{feature.name}`", "reader and writer" if feature.reader else "writer", legacy]
    for capability in Capability:
        support = feature.support(capability)
        if support.reason and support.reason not in notes:
            notes.append(support.reason)
        note = f" ({notes.index(support.reason) + 1})" if support.reason else ""
        cells.append(support.level.value + note)
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
