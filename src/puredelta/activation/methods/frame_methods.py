"""Actions of a DataFrame, which run a shorter query where the log of a table knows the answer."""

from __future__ import annotations

from typing import Any

from puredelta.activation.methods.patches import Method
from puredelta.spark.scan.log_answers import answered, counted, limited


def shorter(original: Method) -> Method:
    """``collect``, ``toPandas`` and the like: see `puredelta.spark.scan.log_answers`."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        rows = answered(self)
        return original(self if rows is None else rows, *args, **kwargs)

    return call


def shorter_show(original: Method) -> Method:
    """``df.show(n)``, which looks at one row more than it shows."""

    def call(self: Any, n: Any = 20, *args: Any, **kwargs: Any) -> Any:
        rows = answered(self)
        if rows is None and type(n) is int:
            rows = limited(self, n + 1)
        return original(self if rows is None else rows, n, *args, **kwargs)

    return call


def shorter_count(original: Method) -> Method:
    """``df.count()``."""

    def call(self: Any) -> Any:
        number = counted(self)
        if number is not None:
            return number
        rows = answered(self)
        return original(self if rows is None else rows)

    return call


def shorter_is_empty(original: Method) -> Method:
    """``df.isEmpty()``."""

    def call(self: Any) -> Any:
        number = counted(self)
        if number is not None:
            return number == 0
        rows = answered(self)
        return original(self if rows is None else rows)

    return call
