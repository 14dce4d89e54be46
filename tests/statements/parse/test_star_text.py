"""Stars of queries over relations with a column that no star shows."""

from __future__ import annotations

import pytest

from puredelta.statements.parse.star_text import with_hidden_column

HIDDEN = {
    "SELECT *, m FROM t AS x": "SELECT * EXCEPT (x.m), m FROM t AS x",
    "SELECT x.*, m.a FROM t x": "SELECT x.* EXCEPT (m), m.a FROM t x",
    "SELECT u.*, m FROM u, t": "SELECT u.*, m FROM u, t",
    "SELECT * FROM t JOIN t b USING (i)": "SELECT * EXCEPT (t.m, b.m) FROM t JOIN t b USING (i)",
    "SELECT * FROM u LEFT ANTI JOIN t": "SELECT * FROM u LEFT ANTI JOIN t",
    "SELECT count(*), 2 * i FROM t": "SELECT count(*), 2 * i FROM t",
    "SELECT struct(*) FROM t": "SELECT struct(* EXCEPT (t.m)) FROM t",
    "SELECT * EXCEPT (a) FROM t": "SELECT * EXCEPT (t.m, a) FROM t",
    "FROM t SELECT *": "FROM t SELECT * EXCEPT (t.m)",
    "SELECT * FROM (SELECT *, m FROM t) z": "SELECT * FROM (SELECT * EXCEPT (t.m), m FROM t) z",
    "WITH c AS (SELECT *, m FROM t) SELECT * FROM c": (
        "WITH c AS (SELECT * EXCEPT (t.m), m FROM t) SELECT * FROM c"
    ),
    "SELECT * FROM u WHERE i IN (SELECT i FROM t)": "SELECT * FROM u WHERE i IN (SELECT i FROM t)",
    "SELECT * FROM u UNION ALL SELECT * FROM t": (
        "SELECT * FROM u UNION ALL SELECT * EXCEPT (t.m) FROM t"
    ),
    "SELECT * FROM t EXCEPT SELECT * FROM u": (
        "SELECT * EXCEPT (t.m) FROM t EXCEPT SELECT * FROM u"
    ),
    "SELECT '*' FROM t -- *": "SELECT '*' FROM t -- *",
}


@pytest.mark.parametrize("text", HIDDEN)
def test_a_star_leaves_the_column_out(text: str) -> None:
    assert with_hidden_column(text, "m", {"t"}) == HIDDEN[text]


@pytest.mark.parametrize(
    "text",
    [
        "TABLE t",
        "FROM t",
        "SELECT * FROM u NATURAL JOIN t",
        "FROM t |> SELECT m",
        "SELECT 1 FROM (FROM t)",
    ],
)
def test_whole_rows_would_show_the_column(text: str) -> None:
    assert with_hidden_column(text, "m", {"t"}) is None
