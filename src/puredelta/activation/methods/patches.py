"""Methods of classes, replaced and put back: the very same function objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from puredelta.spark.jvm.file_index import any_asked
from puredelta.spark.session.pyspark_errors import like_pyspark

Method: TypeAlias = Callable[..., Any]
Make: TypeAlias = Callable[[Method], Method]
"""What makes a replacement from the original."""


class Patches:
    """What has been replaced, so that it can be undone."""

    def __init__(self) -> None:
        self._replaced: list[tuple[type, str, Method, Method]] = []
        self._is_active = True

    def replace(self, owner: type, name: str, make: Make) -> None:
        """Put ``make(original)`` in the place of a method that the class itself defines.

        The new one has the name, signature and documentation of the original. Errors of ours
        that leave it are PySpark's, too.
        """
        original: Method = owner.__dict__[name]
        made = like_pyspark(make(original), may_be_ours=any_asked)

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return (made if self._is_active else original)(*args, **kwargs)

        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original, replacement))

    def undo(self) -> None:
        """Put every original back, the last one first.

        A method that somebody else has replaced after us stays theirs. Ours may be called by it, or
        come back when theirs is undone, and is the original from now on.
        """
        self._is_active = False
        while self._replaced:
            owner, name, original, replacement = self._replaced.pop()
            if owner.__dict__.get(name) is replacement:
                setattr(owner, name, original)
