"""Where a relation can stand in a text, and where its other name belongs."""

from __future__ import annotations

import pytest

from puredelta.protocol.schema.sql_lexer import tokenize
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.relation_text import find_alias_place, read_relations


def relations(text: str) -> list[str]:
    """Return the names ``r...`` that can be relations."""
    tokens = tokenize(text)
    starts = read_relations(tokens).starts
    return [tokens[at].text for at in sorted(starts) if tokens[at].text.startswith("r")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT x FROM r1", "r1"),
        ("FROM r1 SELECT x", "r1"),
        ("TABLE r1", "r1"),
        ("SELECT x, y.z FROM r1 a, r2, r3.x WHERE x IN (x, y)", "r1 r2 r3"),
        ("SELECT * FROM r1 JOIN r2 ON f(a, b) = c, r3", "r1 r2 r3"),
        ("SELECT * FROM r1 LEFT JOIN r2 USING (x, y), r3", "r1 r2 r3"),
        ("SELECT * FROM (r1 JOIN (r2) ON x), ((r3))", "r1 r2 r3"),
        ("SELECT (SELECT max(x) FROM r1), x FROM r2 WHERE EXISTS (FROM r3)", "r1 r2 r3"),
        ("SELECT x FROM r1 WHERE x = 1 GROUP BY x, y HAVING z ORDER BY x, y", "r1"),
        ("SELECT extract(x FROM y), trim(BOTH x FROM y), substring(x FROM y FOR z) FROM r1", "r1"),
        ("SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b FROM r1", "r1"),
        ("SELECT DISTINCT x FROM r1", "r1"),
        ("SELECT transform(a, x -> x.y), f(x => y) FROM r1", "r1"),
        ("SELECT * FROM f(TABLE(r1), x, y), explode(x)", "r1"),
        ("SELECT * FROM r1, LATERAL r2", "r1 r2"),
        ("SELECT * FROM STREAM r1", "r1"),
        ("SELECT * FROM r1 LATERAL VIEW explode(x) t AS a, b WHERE c", "r1"),
        ("SELECT * FROM r1 PIVOT (sum(a) FOR b IN (c, d)), r2", "r1"),
        ("FROM r1 |> WHERE x, y |> JOIN r2 ON x |> SELECT x, y |> UNION ALL TABLE r3", "r1 r2 r3"),
        ("FROM r1 |> SELECT x, (SELECT y FROM r2)", "r1 r2"),
        ("WITH a AS (SELECT x FROM r1), b AS (TABLE r2) SELECT a FROM b", "r1 r2"),
        ("SELECT x.from, y FROM r1, r2", "r1 r2"),
        ("INSERT INTO r1 SELECT x FROM r2", "r1 r2"),
        ("INSERT OVERWRITE TABLE r1 (x, y) SELECT x FROM r2", "r1 r2"),
        ("FROM r1 INSERT INTO r2 SELECT x, y INSERT INTO r3 SELECT z", "r1 r2 r3"),
        ("CREATE TABLE r1 USING x AS SELECT x FROM r2", "r1 r2"),
        ("DESCRIBE EXTENDED r1", "r1"),
        ("SHOW COLUMNS IN r1", "r1"),
        ("SET VAR x = (SELECT max(y) FROM r1)", "r1"),
        ("SELECT /*+ BROADCAST(x) */ y FROM r1", "r1"),
        ("SELECT r1 FROM x", ""),
        ("VALUES (r1, r2)", ""),
        ("SELECT CASE WHEN r1 THEN r2 END, [r1, r2]", ""),
        ("SELECT x FROM y WHERE (r1, r2) IN (SELECT r1, r2)", ""),
        (") SELECT x FROM r1", "r1"),
    ],
)
def test_places_of_relations(text: str, expected: str) -> None:
    assert relations(text) == expected.split()


@pytest.mark.parametrize(
    "after",
    [
        "",
        "^|> WHERE x",
        "^|> AS q",
        "^, u",
        "^)",
        "^WHERE x",
        "^PIVOT (sum(a) FOR b IN (1))",
        "^UNPIVOT INCLUDE NULLS (a FOR b IN (c))",
        "^LATERAL VIEW explode(a) x",
        "^WINDOW w AS (PARTITION BY a)",
        "^QUALIFY x = 1",
        "^LEFT ANTI JOIN u",
        "^SEMI JOIN u",
        "^NATURAL JOIN u",
        "^MINUS SELECT 1",
        "^OFFSET 5",
        "^DISTRIBUTE BY a",
        "^BIN BY (a)",
        "^SELECT a",
        "^MAP a USING 'x'",
        "^DO SELECT 1",
        "TABLESAMPLE (10 PERCENT)^ WHERE x",
        "TABLESAMPLE (5 ROWS) REPEATABLE (3)^",
        "WITH ('a' = 1) TABLESAMPLE (1 ROWS)^ ORDER BY x",
        "TABLESAMPLE (5 ROWS) a",
        "AS a",
        "a |> WHERE x",
        "`where`",
        "limit",
        "order, u",
        "window |> WHERE x",
        "x JOIN u",
        "asof JOIN u",
    ],
)
def test_places_of_aliases(after: str) -> None:
    text = f"t {after.replace('^', '', 1)}"
    cursor = Cursor(text)
    cursor.identifier()
    place = find_alias_place(cursor)
    assert cursor.position == 1
    if after and "^" not in after:
        assert place is None
    else:
        marked = f"t {after}".index("^") if after else 1
        assert place is not None
        assert text[:place].rstrip() == text[:marked].rstrip()
