"""Pages that are generated must not lag behind the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import puredelta

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "simulation/README.md"])
RECORDS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
_LINK = re.compile(r"\]\((?P<page>[^)#\s]+\.md)?(?:#(?P<anchor>[^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_protocol_coverage_is_up_to_date() -> None:
    script = ROOT / "docs" / "generate_protocol_coverage.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_protocol_coverage.py"


def test_layers_and_rooms_are_up_to_date() -> None:
    script = ROOT / "docs" / "generate_rooms.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_rooms.py"


def test_architecture_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    names = set(re.findall(r"`([a-z_/0-9]+\.py)`", text))
    modules = [path.as_posix() for path in (ROOT / "src" / "puredelta").rglob("*.py")]
    gone = [name for name in names if not any(path.endswith(f"/{name}") for path in modules)]
    assert names
    assert not gone


def test_errors_are_up_to_date() -> None:
    script = ROOT / "docs" / "generate_errors.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr or "run: python docs/generate_errors.py"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    words = (re.sub(r"[^\w\s-]", "", title).strip().lower() for title in headings(page))
    return {re.sub(r"[\s-]+", "-", word) for word in words}


def headings(page: Path) -> list[str]:
    return _HEADING.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_have_a_target(page: Path) -> None:
    wrong = []
    for link in _LINK.finditer(page.read_text(encoding="utf-8")):
        if "://" in link[0]:
            continue
        target = page.parent / link["page"] if link["page"] else page
        if not target.is_file() or (link["anchor"] and link["anchor"] not in anchors(target)):
            wrong.append(link[0])
    assert wrong == []


def test_the_index_of_decisions_has_every_record_under_its_title() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\) \| (.+?) \| .+ \|$", index, re.MULTILINE)
    titles = [record.read_text().partition("\n")[0] for record in RECORDS]
    assert RECORDS
    assert sorted(f"{name}: # {number} {title}" for number, name, title in listed) == [
        f"{record.name}: {title}" for record, title in zip(RECORDS, titles, strict=True)
    ]


def test_the_api_page_lists_the_public_names() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| .+ \|$", page, re.MULTILINE)
    assert sorted(listed) == sorted(puredelta.__all__)
