"""Conditions that a text puts on one of its tables, read without an analyzer."""

from __future__ import annotations

import pytest

from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.spark.resolve.predicate_from_sql import NamedSide, Names
from puredelta.spark.resolve.text_conditions import text_conditions

STRUCT = StructType((StructField("v", LONG),))
TABLES = frozenset({"t", "u"})
COLUMNS = {"id": LONG, "day": LONG, "st": STRUCT}


def names(alias: str) -> Names:
    columns = [
        (name, Ref(Side.TARGET, (name,), kind), kind if isinstance(kind, StructType) else None)
        for name, kind in COLUMNS.items()
    ]
    return Names(
        sides=[NamedSide(side=Side.TARGET, qualifier=(alias,), columns=columns)],
        case_sensitive=True,
    )


def compared(op: CompareOp, name: str, value: int) -> Predicate:
    return Compare(op, Ref(Side.TARGET, (name,), LONG), Const(value))


ID_5, ID_6 = compared(CompareOp.EQUAL, "id", 5), compared(CompareOp.EQUAL, "id", 6)
BELOW_9 = compared(CompareOp.LESS, "day", 9)
FROM_1 = compared(CompareOp.GREATER_OR_EQUAL, "day", 1)
TO_2 = compared(CompareOp.LESS_OR_EQUAL, "day", 2)


@pytest.mark.parametrize(
    ("text", "conditions", "may_be_more"),
    [
        ("SELECT id FROM t", (), False),
        ("SELECT id FROM t WHERE id = 5 GROUP BY id", (ID_5,), False),
        ("SELECT count(*) FROM t x WHERE x.id = 5 AND day BETWEEN 1 AND 2", None, False),
        ("SELECT * FROM t JOIN u ON t.id = u.k AND day < 9 WHERE u.c = 3", (BELOW_9,), False),
        ("SELECT * FROM u, t WHERE k = id AND c = 3", (), False),
        ("SELECT * FROM u JOIN t ON k = id WHERE k = 3", (), True),  # the optimizer infers it
        ("SELECT * FROM u JOIN t USING (id) WHERE u.id = 3", (), True),
        ("SELECT * FROM t LEFT JOIN u ON t.id = u.k WHERE t.id = 5", (), True),
        ("SELECT id FROM t GROUP BY id HAVING id = 5", (), True),
        ("SELECT id a FROM t GROUP BY id HAVING a = 5", (), True),
        ("SELECT a FROM (SELECT id AS a FROM t) WHERE a = 5", (), True),
        ("WITH q AS (SELECT day FROM t WHERE id = 5) SELECT max(day) FROM q", (ID_5,), False),
        ("SELECT * FROM t JOIN view_of_constants USING (id)", (), True),
        ("SELECT * FROM t, view_of_constants v WHERE t.id = v.id", (), True),
        ("SELECT * FROM t WHERE startswith(id, '5')", (), True),
        ("SELECT * FROM t WHERE id = 2 + 3", (), True),
        ("SELECT * FROM t WHERE id = :p", (), True),
        ("SELECT * FROM t WHERE id = 5 OR day = abs(k)", (), True),
        ("SELECT * FROM t WHERE id IN (SELECT k FROM u)", (), False),
        ("SELECT * FROM t WHERE NOT id = 5 AND f(day)", None, True),
        ("SELECT price * 3 FROM t JOIN u ON id = k WHERE c LIKE 'a%'", (), False),
        ("SELECT * FROM t WHERE id = 5 UNION ALL SELECT * FROM t WHERE id = 6", None, False),
        ("SELECT * FROM t WHERE id = 5 UNION ALL SELECT * FROM t", (), False),
        ("SELECT * FROM t JOIN u AS st ON true WHERE st.v = 5", (), True),  # of u
        ("SELECT * FROM u LATERAL VIEW explode(a) v AS id, day JOIN t WHERE id = 5", (), True),
        ("SELECT ID FROM t WHERE ID = 5", (), True),  # in some sessions another column
    ],
)
def test_conditions(
    text: str, conditions: tuple[Predicate, ...] | None, *, may_be_more: bool
) -> None:
    found = text_conditions(text, "t", COLUMNS, names, tables=TABLES)
    assert found.may_be_more is may_be_more
    if conditions is not None:
        assert found.conditions == conditions


def test_all_conditions_of_a_query_and_one_of_those_of_several() -> None:
    one = text_conditions(
        "SELECT * FROM t WHERE id = 5 AND day BETWEEN 1 AND 2", "t", COLUMNS, names, tables=TABLES
    )
    assert one.conditions == (ID_5, FROM_1, TO_2)
    text = "SELECT * FROM t WHERE id = 5 UNION ALL SELECT * FROM t WHERE id = 6 AND day < 9"
    several = text_conditions(text, "t", COLUMNS, names, tables=TABLES)
    assert several.conditions == (Or((And((ID_5,)), And((ID_6, BELOW_9)))),)
