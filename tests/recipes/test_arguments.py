"""Arguments that cannot be are refused before any table is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from puredelta.commands.write.expectations import Expectation, RowCheck
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.recipes import apply_changes, history, upsert
from puredelta.recipes.arguments import TableSettings, keys_of, names_of, require_options
from puredelta.recipes.target import is_path


def refusal(call: Any, *given: Any, **more: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        call(*given, **more)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    return caught.value.message


@pytest.mark.parametrize(
    ("keys", "says"),
    [([], "keys is empty"), ("", "names of columns"), (["a", "a"], "twice"), ([1], "names of")],
)
def test_keys(keys: Any, says: str) -> None:
    assert says in refusal(keys_of, keys)


def test_names_may_be_one_or_many() -> None:
    assert names_of("a b", "x") == ("a b",)
    assert names_of(["a", "b"], "x") == ("a", "b")
    assert names_of(None, "x") == ()


def test_unknown_options_are_type_errors() -> None:
    with pytest.raises(TypeError, match=r"upsert\(\) got an unexpected keyword argument 'key'"):
        require_options("upsert", {"key": 1}, upsert.UpsertOptions)
    require_options("upsert", {"create": True, "order_by": "a"}, upsert.UpsertOptions)


def test_half_of_a_transaction_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        TableSettings.of({"txn_app_id": "a"})
    assert caught.value.code is ErrorCode.INVALID_IDEMPOTENT_WRITES_OPTIONS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"on_duplicate_source": "latest"}, "needs order_by"),
        ({"on_duplicate_source": "newest"}, "'error', 'latest', 'any'"),
        ({"update_columns": "a", "except_columns": "b"}, "exclude each other"),
        ({"delete_when": 1}, "SQL text or a Column"),
    ],
)
def test_upsert(options: Any, says: str) -> None:
    assert says in refusal(upsert._upsert, "upsert", "id", options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stored_as_scd_type": 3}, "Use 1 or 2"),
        ({"stored_as_scd_type": 2, "apply_as_truncates": "x"}, "stored_as_scd_type=1"),
        ({"track_history_column_list": "x"}, "stored_as_scd_type=2"),
        ({"column_list": "a", "except_column_list": "b"}, "exclude each other"),
    ],
)
def test_apply_changes(options: Any, says: str) -> None:
    assert says in refusal(apply_changes._recipe, "apply_changes", "id", "seq", options)


def test_history_has_three_columns_of_its_own() -> None:
    options: Any = {"valid_to": "valid_from"}
    assert "three columns" in refusal(history._recipe, "scd2", "id", "at", options)


def test_a_scope_is_a_condition() -> None:
    assert "scope" in refusal(upsert._sync, "sync", "id", " ", {})


def test_expectations() -> None:
    assert "Use 'warn'" in refusal(RowCheck.of, {"a": Expectation("x", "ignore")})
    given: Any = {"a": 1}
    assert "SQL text or a Column" in refusal(RowCheck.of, given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("/a", True), ("s3://b/a", True), ("a/b", True), ("a.b", False), ("delta.`/a`", False)],
)
def test_paths_have_a_slash(text: str, expected: bool) -> None:
    assert is_path(text) is expected
