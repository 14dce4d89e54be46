"""The rules of ``docs/behaviour.md``: what is cited is listed, what is listed is tested."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "behaviour.md"
NUMBER = r"(?:\d{2,3}|(?<!E-)\d)[a-z]?"  # 1E-5 is a number
AREAS = "MCXESW"
LISTED = re.compile(rf"^\| ([{AREAS}]-\S+) \| (.+) \| (.+) \|$", re.MULTILINE)
CITED = re.compile(rf"\b([{AREAS}])-({NUMBER})\b")
RANGE = re.compile(rf"\b([{AREAS}])-({NUMBER})(?:\.\.|\s+to\s+)\1-({NUMBER})\b")
TEST_NAME = re.compile(r"\bdef (test_\w+)")
IN_NAME = re.compile(rf"(_to)?_([{AREAS.lower()}])_?(\d{{2,3}}[a-z]?|(?<=w_)\d)(?=_|$)")


class Rule(NamedTuple):
    """An id taken apart, so that M-9 comes before M-10 and M-01 is M-1."""

    area: str
    number: int
    suffix: str

    @classmethod
    def of(cls, area: str, text: str) -> Rule:
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        return cls(area.upper(), int(digits), text[len(digits) :])

    @property
    def order(self) -> tuple[int, int, str]:
        return AREAS.index(self.area), self.number, self.suffix


class Citations(NamedTuple):
    """The rules that a text names one by one, and those between two that it names."""

    single: frozenset[Rule]
    ranges: tuple[tuple[Rule, Rule], ...]

    def cover(self, rule: Rule) -> bool:
        return rule in self.single or any(
            rule.area == first.area and first.order <= rule.order <= last.order
            for first, last in self.ranges
        )


def cited(text: str) -> Citations:
    """Find ``M-34``, ``X-60..X-72``, ``C-40 to C-48`` and names such as ``test_m_34_and_more``."""
    single = {Rule.of(*found) for found in CITED.findall(text)}
    ranges = [
        (Rule.of(area, first), Rule.of(area, last)) for area, first, last in RANGE.findall(text)
    ]
    for name in TEST_NAME.findall(text):
        before: Rule | None = None
        for reaches, area, number in IN_NAME.findall(name):
            rule = Rule.of(area, number)
            single.add(rule)
            if reaches and before is not None:
                ranges.append((before, rule))
            before = rule
    return Citations(frozenset(single), tuple(ranges))


def citations(files: Iterable[Path]) -> Iterator[tuple[Path, Citations]]:
    for file in files:
        if file not in {PAGE, Path(__file__)}:
            yield file.relative_to(ROOT), cited(file.read_text())


def code(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def listed() -> list[Rule]:
    texts = [found[1] for found in LISTED.finditer(PAGE.read_text())]
    return [Rule.of(*text.split("-")) for text in texts]


def test_every_rule_stands_once_in_order_and_with_its_source() -> None:
    found = listed()
    assert [rule for rule, count in Counter(found).items() if count > 1] == []
    assert found == sorted(found, key=lambda rule: rule.order)
    table_rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| [A-Z]-", line)]
    assert len(found) == len(table_rows), "a row is | id | rule | source |"


def test_every_rule_that_is_cited_exists() -> None:
    known = set(listed())
    files = [*code("src"), *code("tests"), *code("benchmarks"), *code("docs"), *pages()]
    unknown = {
        (str(file), rule) for file, found in citations(files) for rule in found.single - known
    }
    assert unknown == set()


def test_every_rule_is_cited_by_a_test() -> None:
    found = [citation for _, citation in citations(code("tests"))]
    assert [rule for rule in listed() if not any(each.cover(rule) for each in found)] == []


def rules(text: str) -> list[Rule]:
    return [Rule.of(*each.split("-")) for each in text.split()]


@pytest.mark.parametrize(
    ("text", "single", "ranges"),
    [
        ("rows stay (M-34); see X-07, too", "M-34 X-07", ""),
        ("W-3 and W-28a, C-51b", "W-3 W-28a C-51b", ""),
        ("X-09..X-11", "X-09 X-11", "X-09 X-11"),
        ("(M-08 to\nM-11)", "M-08 M-11", "M-08 M-11"),
        ("def test_m_34_rows():", "M-34", ""),
        ("def test_m100_to_m102_columns():", "M-100 M-102", "M-100 M-102"),
        ("def test_c_25_w_23_files():", "C-25 W-23", ""),
        ("def test_a_hint_x36():", "X-36", ""),
        ("1E-5, UTF-16, CRC-32, def test_s3_paths():", "", ""),
    ],
)
def test_forms_of_citations(text: str, single: str, ranges: str) -> None:
    ends = [tuple(rules(ranges))] if ranges else []
    assert cited(text) == Citations(frozenset(rules(single)), tuple(ends))


def test_a_range_covers_what_lies_between() -> None:
    first, between, suffixed, last, other = rules("C-50 C-51 C-51b C-52 M-51")
    found = Citations(frozenset(), ((first, last),))
    assert all(found.cover(rule) for rule in (first, between, suffixed, last))
    assert not any(found.cover(rule) for rule in (other, *rules("C-49 C-53")))
