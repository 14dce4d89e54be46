"""Statement texts built from a MergeSpec, plainly or in every spelling the grammar allows."""

from __future__ import annotations

from hypothesis import strategies as st

from puredelta.commands.dml.spec import (
    Assignment,
    Clause,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)

# Expressions with everything inside that ends a clause elsewhere.
EXPRESSIONS = st.sampled_from(
    [
        "t.k = s.k",
        "s.v",
        "1",
        "DEFAULT",
        "'WHEN MATCHED THEN'",
        '"a, b"',
        "r'\\'",
        "`WHEN`.`a``b, c`",
        "CASE WHEN t.k > 1 THEN 2 ELSE 3 END",
        "case s.k when 1 then case when end > 2 then 1 end end + 1",
        "CASE WHEN matched THEN 1 END = 1",
        "concat(s.a, ',', coalesce(s.b, ')'))",
        "transform(s.xs, x -> x + 1)[0]",
        "s.v::struct<a:int,b:array<map<int,string>>>",
        "cast(s.v AS decimal(10, 2))",
        "s.k IN (SELECT k FROM x WHERE k = 1)",
        "s.k NOT IN (1, 2)",
        "s.k IS NOT DISTINCT FROM end",
        "t.when = s.then AND t.case.end < 5",
        "case = 1 AND end > 2 OR when < 3",
        "NOT then",
        "s.j:a.b[0]",
        ":p + ?",
        "INTERVAL 1 DAY",
        "INTERVAL '1' YEAR + DATE'2024-01-01'",
        "t.a -- WHEN MATCHED\n + 1",
        "t.a /* , /* WHEN */ THEN */ + 1",
        "(t.a, (s.b))",
        "-1.5e3BD",
        "s.a BETWEEN 1 AND 2",
        "a <=> b",
        "exists(s.xs, x -> x = t.k)",
    ]
)
COLUMNS = st.sampled_from(["a", "t.a", "`a.b`", "t.`x y`.z", "k", "when", "t.end", "`a``b`"])


def rows(*, star: bool) -> st.SearchStrategy[tuple[Assignment, ...] | Star]:
    pairs = st.lists(st.builds(Assignment, COLUMNS, EXPRESSIONS), min_size=1, max_size=3)
    given_rows = pairs.map(tuple)
    return given_rows | st.just(Star.STAR) if star else given_rows


CONDITIONS = st.none() | EXPRESSIONS
CLAUSES = (
    st.builds(Matched, st.builds(Update, rows(star=True)) | st.just(Delete()), CONDITIONS)
    | st.builds(NotMatched, st.builds(Insert, rows(star=True)), CONDITIONS)
    | st.builds(
        NotMatchedBySource, st.builds(Update, rows(star=False)) | st.just(Delete()), CONDITIONS
    )
)
SPECS = st.builds(
    MergeSpec,
    on=EXPRESSIONS,
    clauses=st.lists(CLAUSES, max_size=4).map(tuple),
    evolve_schema=st.booleans(),
)


def merge_text(
    spec: MergeSpec,
    *,
    target: str = "delta.`/table` AS t",
    source: str = "updates AS s",
) -> str:
    return " ".join(merge_words(spec, target=target, source=source))


def merge_words(spec: MergeSpec, *, target: str, source: str) -> list[str]:
    """The statement in pieces; white space and comments may stand between any two."""
    evolve = ["WITH", "SCHEMA", "EVOLUTION"] if spec.evolve_schema else []
    head = ["MERGE", *evolve, "INTO", target, "USING", source, "ON", str(spec.on)]
    return head + [word for clause in spec.clauses for word in _clause(clause)]


def _clause(clause: Clause) -> list[str]:
    kind = {
        Matched: ["MATCHED"],
        NotMatched: ["NOT", "MATCHED"],
        NotMatchedBySource: ["NOT", "MATCHED", "BY", "SOURCE"],
    }[type(clause)]
    condition = [] if clause.condition is None else ["AND", str(clause.condition)]
    return ["WHEN", *kind, *condition, "THEN", *_action(clause)]


def _action(clause: Clause) -> list[str]:
    match clause.action:
        case Delete():
            return ["DELETE"]
        case Update(assignments=Star.STAR):
            return ["UPDATE", "SET", "*"]
        case Insert(assignments=Star.STAR):
            return ["INSERT", "*"]
        case Update(assignments=pairs):
            words = [w for a in pairs for w in (a.column, "=", str(a.value), ",")]
            return ["UPDATE", "SET", *words[:-1]]
        case Insert(assignments=pairs):
            columns = [w for a in pairs for w in (a.column, ",")][:-1]
            values = [w for a in pairs for w in (str(a.value), ",")][:-1]
            return ["INSERT", "(", *columns, ")", "VALUES", "(", *values, ")"]
    raise TypeError(clause)
