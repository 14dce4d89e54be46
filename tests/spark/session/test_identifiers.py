"""Names as text, by Spark's rules for attribute names."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.session.names import display_name, parse_name, quote_name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("t.a.b", ("t", "a", "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("t.`a``b`", ("t", "a`b")),
        ("lower(a)", ("lower(a)",)),
        ("a b", ("a b",)),
        ("", ("",)),
    ],
)
def test_names_split_at_dots_outside_of_back_ticks(text: str, parts: tuple[str, ...]) -> None:
    assert parse_name(text) == parts
    assert parse_name(quote_name(parts)) == parts


@pytest.mark.parametrize("text", ["`a", "a`b`", "`a`b", "a.`b`c"])
def test_stray_back_ticks_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_name(text)
    assert caught.value.code is ErrorCode.INVALID_ATTRIBUTE_NAME_SYNTAX
    assert text in str(caught.value)


def test_messages_quote_only_what_needs_it() -> None:
    assert display_name(("t", "a b", "x1", "12")) == "t.`a b`.x1.`12`"
