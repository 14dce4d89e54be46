from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from puredelta.inspection.report_page import report_page
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import LONG, StructField, StructType
from tests.inspection.small_tables import append, make_table
from tests.log.tables import WRITE, transact

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e\x1b[31m"
_VOID = frozenset({"meta", "line", "rect", "br", "link", "img"})


class Page(HTMLParser):
    """Tags, ids and links of a page; tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(str(values["id"]))
        self.links += [str(values[name]) for name in ("href", "src") if name in values]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag in self.open:
            while self.open.pop() != tag:
                pass


def hostile(root: Path) -> TableLog:
    log = make_table(root, [1, 2])
    evil = replace(
        log.snapshot().metadata,
        name=EVIL,
        description=EVIL,
        configuration={EVIL: EVIL},
        schema_string=encode_schema(StructType((StructField("<b>x</b>", LONG),))),
    )
    transact(log).commit([evil], WRITE)
    append(log, root, "<i>.parquet", [3], user_metadata=EVIL)
    return log


def test_the_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1, 2], [3])
    append(log, tmp_path, "g.parquet", [4])
    text = report_page(log)
    page = Page(text)
    assert not page.open
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert {"header", "main", "footer", "nav", "h1", "caption", "figcaption"} <= set(page.tags)
    assert page.tags.count("h1") == 1
    assert "script" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on")]
    assert "http:" not in text
    assert "https:" not in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_texts_of_the_table_stay_texts(tmp_path: Path) -> None:
    text = report_page(hostile(tmp_path))
    page = Page(text)
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "b" not in page.tags
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_warning_comes_with_the_statement_that_mends_it(tmp_path: Path) -> None:
    log = make_table(tmp_path, *[[n] for n in range(25)])
    text = report_page(log)
    assert f"<code>OPTIMIZE delta.`{log.root_uri.replace('file:', 'file:')}`" in text


def test_tables_without_files_or_commits_have_a_page(tmp_path: Path) -> None:
    assert "None: nothing has to be done." in report_page(make_table(tmp_path))


def test_only_the_newest_commits_are_read(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    for number in range(5):
        append(log, tmp_path, f"g{number}.parquet", [number])
    text = report_page(log, commits=2)
    assert "2 commits of 6" in text
