"""``= DEFAULT``: the keyword in the place of a value (M-100).

It is the keyword only where no column of that name is in scope, as in Spark; so it shows as
a name that the analyzer could not resolve.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    Resolver,
)

_KEYWORD = "default"
_NOTHING = "NULL"


def resolve_with_defaults(
    resolver: Resolver, requests: Sequence[Request], values: Collection[int]
) -> tuple[Resolution, frozenset[int]]:
    """Resolve all requests; also return which of ``values`` are the keyword.

    ``values`` are the positions of whole assigned values, the only place for the keyword.

    Raises:
        pyspark.errors.PySparkException: what Spark itself refuses.
    """
    resolution = resolver.resolve(requests)
    keywords = frozenset(
        error.position
        for error in resolution.errors
        if error.position in values and _is_keyword(requests[error.position], error)
    )
    if keywords:
        plain = [
            replace(r, expression=_NOTHING) if n in keywords else r for n, r in enumerate(requests)
        ]
        resolution = resolver.resolve(plain)
    return resolution, keywords


def _is_keyword(request: Request, error: ResolutionError) -> bool:
    given = request.expression
    return (
        error.problem is ResolutionProblem.UNRESOLVED
        and isinstance(given, str)
        and given.strip().lower() == _KEYWORD
    )
