"""What a reader or a writer has been told: PySpark keeps it in the JVM, so it is written down.

The calls themselves are forwarded unchanged; what is written down is read when a call turns
out to be ours. A builder that was made before the activation knows nothing of its past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from puredelta.activation.patches import Method, Patches

_ATTRIBUTE = "_puredelta_told"

Words = TypeVar("Words")
"""What a kind of builder is told: `Told`, or a class that holds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The words of one builder so far."""

    format: str | None = None
    mode: str | None = None
    options: Mapping[str, str] | None = None
    """As spelt last; names that differ in case are one option."""
    partition_by: tuple[str, ...] = ()
    has_schema: bool = False
    layout: str | None = None
    """``bucketBy``, ``sortBy`` or ``clusterBy``, if one was called."""

    @classmethod
    def of(cls, builder: Any) -> Told:
        """Return what this reader or writer was told."""
        found = builder.__dict__.get(_ATTRIBUTE)
        return found if isinstance(found, Told) else cls()

    def with_options(self, options: Mapping[str, Any]) -> Told:
        """Add options as PySpark does: None says nothing, true and false in lower case.

        >>> Told().with_options({"mergeSchema": True}).with_options({"MERGESCHEMA": 1}).options
        {'MERGESCHEMA': '1'}
        """
        known = dict(self.options or {})
        for name, value in options.items():
            if value is None:
                continue
            for same in [key for key in known if key.lower() == name.lower()]:
                del known[same]
            known[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return replace(self, options=known)

    def with_partitions(self, columns: str | Sequence[str]) -> Told:
        """Set the partition columns."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        return replace(self, partition_by=names)

    def without_option(self, name: str) -> Told:
        """Leave an option out."""
        kept = {k: v for k, v in (self.options or {}).items() if k.lower() != name.lower()}
        return replace(self, options=kept)

    def option(self, name: str) -> str | None:
        """Return an option, whatever the case of its name."""
        found = (v for k, v in (self.options or {}).items() if k.lower() == name.lower())
        return next(found, None)


def record_reader(patches: Patches, reader: type) -> None:
    """Write down what a reader is told."""
    _record(patches, reader, "format", note_format)
    _record(patches, reader, "schema", lambda told, *_, **__: replace(told, has_schema=True))
    _record(patches, reader, "option", note_option)
    _record(patches, reader, "options", note_options)


def record_writer(patches: Patches, writer: type) -> None:
    """Write down what a writer is told."""
    _record(patches, writer, "format", note_format)
    _record(patches, writer, "mode", _mode)
    _record(patches, writer, "option", note_option)
    _record(patches, writer, "options", note_options)
    _record(patches, writer, "partitionBy", note_partitions)
    for layout in ("bucketBy", "sortBy", "clusterBy"):
        _record(patches, writer, layout, note_layout(layout))


def record(
    patches: Patches,
    owner: type,
    name: str,
    note: Callable[..., Words],
    *,
    attribute: str,
    words_of: Callable[[Any], Words | None],
) -> None:
    """Let a builder's method write down what it is told; not where ``words_of`` knows nothing."""

    def make(original: Method) -> Method:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(self, *args, **kwargs)  # first: what it refuses was not told
            words = words_of(self)
            if words is not None:
                self.__dict__[attribute] = note(words, *args, **kwargs)
            return answer

        return call

    patches.replace(owner, name, make)


def _record(patches: Patches, owner: type, name: str, note: Callable[..., Told]) -> None:
    record(patches, owner, name, note, attribute=_ATTRIBUTE, words_of=Told.of)


def inside(note: Callable[..., Told]) -> Callable[..., Any]:
    """Return what notes the same in the `Told` that a builder's own words hold as ``told``."""

    def within(words: Any, /, *args: Any, **kwargs: Any) -> Any:
        return replace(words, told=note(words.told, *args, **kwargs))

    return within


def note_format(told: Told, source: str) -> Told:
    """Note the format."""
    return replace(told, format=source)


def _mode(told: Told, saveMode: str | None) -> Told:  # noqa: N803 - PySpark's name
    return told if saveMode is None else replace(told, mode=saveMode)


def note_option(told: Told, key: str, value: Any) -> Told:
    """Note an option."""
    return told.with_options({key: value})


def note_options(told: Told, /, **options: Any) -> Told:
    """Note options."""
    return told.with_options(options)


def note_partitions(told: Told, *cols: Any) -> Told:
    """Note the partition columns, given one by one or as one list."""
    one_list = len(cols) == 1 and isinstance(cols[0], list | tuple)
    return told.with_partitions(cols[0] if one_list else cols)


def note_layout(name: str) -> Callable[..., Told]:
    """Return what notes a layout of this name."""

    def note(told: Told, *_: Any, **__: Any) -> Told:
        return replace(told, layout=name)

    return note
