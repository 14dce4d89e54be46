"""Failures of catalog requests, by the next step that they allow.

A request that was answered is refused for good or for now. A request that was not answered may
have been carried out.
"""

from __future__ import annotations

from enum import Enum

from puredelta.errors import DeltaError, ErrorCode


class Refusal(Enum):
    """The reason of a catalog, as far as a client acts on it."""

    NOT_FOUND = "there is no such catalog, schema or table"
    EXISTS = "the name is taken"
    OTHER_FORMAT = "the table is no Delta table"
    VERSION_TAKEN = "another commit has the version"
    CHANGED = "the table, or its metadata, is not as the request says"
    TOO_MANY_COMMITS = "too many commits are not published yet"
    NOT_ALLOWED = "the token is missing, wrong, or allows too little"
    INVALID = "the request is wrong"
    NO_ANSWER = "no answer came, or one that leaves the outcome open"


_CODES = {
    Refusal.NOT_FOUND: ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
    Refusal.EXISTS: ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS,
    Refusal.OTHER_FORMAT: ErrorCode.MISSING_DELTA_TABLE,
}


class CatalogRequestError(DeltaError):
    """A catalog refused a request, or did not answer it; the text never shows a token."""

    retry_after_s: float | None = None
    """For how long the server wants no other request, if it says so."""
    may_be_done: bool = True
    """Of a request without an answer: whether it may have been carried out, or may be later."""

    def __init__(self, message: str, *, refusal: Refusal, **details: object) -> None:
        code = _CODES.get(refusal, ErrorCode.CATALOG_REQUEST_FAILED)
        DeltaError.__init__(self, message, code=code, **details)
        self.refusal = refusal

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the refusal when the exception is pickled."""
        return (_rebuild, (self.message, self.refusal, self.details))


def _rebuild(message: str, refusal: Refusal, details: dict[str, object]) -> CatalogRequestError:
    return CatalogRequestError(message, refusal=refusal, **details)


NOTHING_CHANGED = "Nothing was changed."


def wrong_answer(source: str, problem: str) -> CatalogRequestError:
    """Return the failure of an answer that no catalog may give."""
    return CatalogRequestError(
        f"The catalog's answer about {source} cannot be used: {problem}. {NOTHING_CHANGED} Tell "
        "the administrator of the catalog.",
        refusal=Refusal.INVALID,
        table=source,
    )


_BY_TYPE = {
    "CommitVersionConflictException": Refusal.VERSION_TAKEN,
    "COMMIT_VERSION_CONFLICT": Refusal.VERSION_TAKEN,
    "UpdateRequirementConflictException": Refusal.CHANGED,
    "ResourceExhaustedException": Refusal.TOO_MANY_COMMITS,
    "RESOURCE_EXHAUSTED": Refusal.TOO_MANY_COMMITS,
    "CommitStateUnknownException": Refusal.NO_ANSWER,
    "UnsupportedTableFormatException": Refusal.OTHER_FORMAT,
    "AlreadyExistsException": Refusal.EXISTS,
    "CATALOG_ALREADY_EXISTS": Refusal.EXISTS,
    "SCHEMA_ALREADY_EXISTS": Refusal.EXISTS,
    "TABLE_ALREADY_EXISTS": Refusal.EXISTS,
}
_BY_STATUS = {
    401: Refusal.NOT_ALLOWED,
    403: Refusal.NOT_ALLOWED,
    404: Refusal.NOT_FOUND,
    408: Refusal.NO_ANSWER,
    429: Refusal.NO_ANSWER,
}
_SERVER_ERROR = 500


def refusal_of(status: int, kind: str | None) -> Refusal:
    """Return the meaning of an answer by its status, and by the type of error that it names.

    A 429 without the type of too many commits is a server that is busy: ask again later.

    >>> refusal_of(409, "CommitVersionConflictException")
    <Refusal.VERSION_TAKEN: 'another commit has the version'>
    >>> refusal_of(503, None)
    <Refusal.NO_ANSWER: 'no answer came, or one that leaves the outcome open'>
    """
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if status >= _SERVER_ERROR:
        return Refusal.NO_ANSWER
    return _BY_STATUS.get(status, Refusal.INVALID)
