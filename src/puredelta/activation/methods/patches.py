"""Methods of classes, replaced and put back: the very same function objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from puredelta.spark.session.pyspark_errors import like_pyspark

Method: TypeAlias = Callable[..., Any]
Make: TypeAlias = Callable[[Method], Method]
"""What makes a replacement from the original."""


class Patches:
    """What has been replaced, so that it can be undone."""

    def __init__(self) -> None:
        self._originals: list[tuple[type, str, Method]] = []

    def replace(self, owner: type, name: str, make: Make) -> None:
        """Put ``make(original)`` in the place of a method that the class itself defines.

        The new one has the name, signature and documentation of the original. Errors of ours
        that leave it are PySpark's, too.
        """
        original: Method = owner.__dict__[name]
        made = like_pyspark(make(original))
        setattr(owner, name, functools.wraps(original)(made))
        self._originals.append((owner, name, original))

    def undo(self) -> None:
        """Put every original back, the last one first."""
        while self._originals:
            owner, name, original = self._originals.pop()
            setattr(owner, name, original)
