"""Reports as values and texts; what they name may be hostile."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from puredelta.commands.statement.parts import (
    ClauseReport,
    FileAction,
    FileDecision,
    FileTotals,
    ForeignCommit,
    PruningStep,
    ReportState,
    RowTotals,
    SelectedFiles,
    SettingValue,
    StageTime,
)
from puredelta.commands.statement.report import Report

HOSTILE = "<script>alert('x')</script>|`\"&\x1b[2J\nnext\u2028line [a](javascript:b)"


def report_of(text: str) -> Report:
    return Report(
        statement="MERGE",
        table=text,
        state=ReportState.EXECUTED,
        read_version=3,
        committed_version=4,
        clauses=(ClauseReport(number=1, text=text, action="update", rows=1),),
        selected=SelectedFiles(
            files_total=10,
            bytes_total=1000,
            steps=(
                PruningStep(
                    rule=text,
                    by="statistics",
                    files_skipped=9,
                    bytes_skipped=900,
                    files_left=1,
                    bytes_left=100,
                ),
            ),
            files_left=1,
            bytes_left=100,
        ),
        rows=RowTotals(source=2, inserted=0),
        files=FileTotals(rewritten=1, rewritten_bytes=100),
        decisions=(
            FileDecision(path=text, action=FileAction.REWRITE, reason=text, size_bytes=100),
        ),
        decisions_left_out=3,
        stages=(StageTime(name="4 prune", seconds=0.25, outcome=text),),
        since_version=1,
        foreign_commits=(
            ForeignCommit(version=2, operation="WRITE", conflict=None),
            ForeignCommit(
                version=3, operation=text, conflict=text, error="ConcurrentAppendException"
            ),
        ),
        settings=(SettingValue(key="a.b", value=text, origin="session", effect="does"),),
        details=((text, text),),
        notes=(text,),
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert {name for name, _ in attrs} <= {"class", "style", "open", "scope"}

    def handle_data(self, data: str) -> None:
        self.text += data


KNOWN_TAGS = {"div", "details", "summary", "table", "tbody", "tr", "th", "td"}


@given(st.one_of(st.just(HOSTILE), st.text(max_size=40)))
def test_html_holds_texts_and_no_markup_of_theirs(text: str) -> None:
    page = Tags()
    shown = report_of(text)._repr_html_()
    page.feed(shown)
    assert page.seen <= KNOWN_TAGS
    assert "http" not in shown.replace(text, "")


@given(st.one_of(st.just(HOSTILE), st.text(max_size=40)))
def test_a_terminal_gets_nothing_to_obey(text: str) -> None:
    shown = report_of(text).to_text(full=True)
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert len(shown.split("\n")) == len(report_of("x").to_text(full=True).split("\n"))


@given(st.one_of(st.just(HOSTILE), st.text(max_size=40)))
def test_every_row_of_a_markdown_table_has_three_cells(text: str) -> None:
    lines = report_of(text).to_markdown().split("\n")
    rows = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row.replace("\\\\", ""))) for row in rows} == {4}
    assert not re.search(r"(?<!\\)<", "\n".join(rows).replace("\\\\", ""))


def test_what_is_unknown_is_none_and_what_is_zero_is_zero() -> None:
    found = json.loads(json.dumps(report_of("t").to_dict()))
    assert found["rows"] == {
        "source": 2,
        "inserted": 0,
        "updated": None,
        "deleted": None,
        "copied": None,
    }
    assert found["state"] == "executed"
    assert found["decisions"][0]["action"] == "rewrite"
    text = str(report_of("t"))
    assert "inserted  0" in text
    assert "updated" not in text


def test_conflicts_are_those_of_others_that_could_not_be_followed() -> None:
    report = report_of("t")
    assert [commit.version for commit in report.conflicts] == [3]
    assert "version 2, WRITE  no conflict" in str(report)
    assert "would have been ConcurrentAppendException" in str(report)


def test_a_prompt_shows_the_text() -> None:
    report = report_of("t")
    assert repr(report) == str(report)
    assert "File by file" not in str(report)
    assert "and 3 more" in report.to_text(full=True)
