"""What a run must never show."""

from __future__ import annotations


class Violation(BaseException):
    """Something was lost, doubled or wrongly told. No ``except Exception`` may swallow it."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule
        """The sentence that does not hold, the same for each run that breaks it."""
        self._message = message

    def __reduce__(self) -> tuple[type[Violation], tuple[str, str]]:
        """Come from another process as it was."""
        return type(self), (self.rule, self._message)
