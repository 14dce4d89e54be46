"""Checks of argument types with delta-spark's class and words: ``ValueError``."""

from __future__ import annotations

from collections.abc import Mapping


def require_string(value: object, name: str) -> None:
    """Raise ValueError unless the value is text."""
    _require(value, name, str, "a string")


def require_integer(value: object, name: str) -> None:
    """Raise ValueError unless the value is an int; like delta-spark, take a bool for one."""
    _require(value, name, int, "an int")


def require_boolean(value: object, name: str) -> None:
    """Raise ValueError unless the value is a bool."""
    _require(value, name, bool, "a boolean")


def require_properties(value: object) -> None:
    """Raise ValueError unless the value is a dict from text to text."""
    _require(value, "properties", dict, "a dict")
    assert isinstance(value, Mapping)  # noqa: S101 - a dict is one
    for key, text in value.items():
        require_string(key, f"All property keys including {key}")
        require_string(text, f"All property values including {text}")


def _require(value: object, name: str, kind: type, words: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} needs to be {words} but got '{type(value)}'.")  # noqa: TRY004
