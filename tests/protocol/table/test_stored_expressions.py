"""Which expressions of a table reach beyond the row they are evaluated for."""

from __future__ import annotations

import pytest

from puredelta.protocol.table.stored_expressions import find_reflection, in_brackets, reaches_out


@pytest.mark.parametrize(
    "sql",
    [
        "java_method('java.lang.System', 'exit', '1')",
        "REFLECT('a', 'b')",
        "Try_Reflect ('a', 'b')",
        "`java_method`('a', 'b')",
        "\"java_method\"('a', 'b')",
        "builtin.java_method('a', 'b')",
        "system.builtin.java_method('a', 'b')",
        "`system` . `builtin` . `JAVA_METHOD` ('a', 'b')",
        "java_method/* x */('a', 'b')",
        "java_method -- x\n('a', 'b')",
        "java_method -- \\\n ' \n ('a', 'b') -- '",
        "/* /* */ ' */ java_method('a', 'b') --'",
        "x <> r'\\' OR java_method('a', 'b') = ''",
        "x <> 'it\\'s' OR java_method('a', 'b') = ''",
        "x <> 'it''s' OR java_method('a', 'b') = ''",
        "id > 0 AND array_contains(transform(a, x -> upper(reflect('a', x))), 'b')",
        "CASE WHEN id IS NULL THEN coalesce(1, reflect('a', 'b')) END",
        "java_method\u00a0('a', 'b')",
        "IDENTIFIER('java_' || 'method')('a', 'b')",
        "identifier /**/ ('reflect')('a', 'b')",
        "\u0131dent\u0131f\u0131er('reflect')('a', 'b')",  # Spark's lexer takes upper case
    ],
)
def test_every_spelling_of_a_call_is_found(sql: str) -> None:
    assert find_reflection(sql) is not None
    assert find_reflection(in_brackets(f"x = 1 AND {sql}")) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "name <> 'reflect(1)'",
        "reflect > 0 AND java_method IS NOT NULL",
        "`reflect` = 1",
        "reflection(1) > 0",
        "id > 0 -- java_method('a', 'b')",
        "id > 0 /* /* */ reflect('a') */",
        "name <> 'it\\'s reflect(1)'",
        'name <> r"x" AND name <> "reflect(1)"',
        "identifier > 0",
    ],
)
def test_words_alone_are_no_calls(sql: str) -> None:
    assert find_reflection(sql) is None
    assert not reaches_out(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "(SELECT max(x) FROM secret)",
        "coalesce((select 1), 0)",
        "id IN (SELECT id FROM secret)",
        "EXISTS (WITH s AS (SELECT 1) SELECT * FROM s)",
        "(TABLE secret)",
        "(TABLE `is`)",
        "(FROM secret SELECT max(x))",
        "(/* x */ SELECT 1)",
        "((((SELECT 1))))",
        "SELECT 1",
        "TABLE secret",
        "0) UNION ALL TABLE secret --",
        "0), (1",
        "1 = 1) OR (1 = 1",
        "(1",
        "(MAP x USING 'sh' FROM secret)",
    ],
)
def test_queries_and_brackets_of_others_are_found(sql: str) -> None:
    assert reaches_out(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "id > 0",
        "(id > 0) AND (name IN ('a', 'b')) -- all",
        "extract(YEAR FROM ts) > 2000 AND trim(BOTH 'x' FROM name) <> ''",
        "(table > 3) AND (from IS NOT NULL) AND (with = 1)",
        "map('a', 1)['a'] = (transform(array(1), x -> x))[0]",
        "name <> '(SELECT 1)' AND name <> ')'",
        "'('",
    ],
)
def test_expressions_over_a_row_are_left_alone(sql: str) -> None:
    assert not reaches_out(sql)
