"""Classes and objects of the JVM by name, each looked up once.

``jvm.org.apache...`` would ask the JVM at every dot, and a class asks it for a static method
every time that is called: as long as the calls themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember

_CLASSES: dict[Any, dict[str, KnownClass]] = {}
"""By connection to a JVM, and by name."""


class KnownClass:
    """A class of the JVM that keeps what stays the same: static methods, and Scala's objects."""

    def __init__(self, java: JavaClass) -> None:
        self._java = java

    def __call__(self, *arguments: Any) -> Any:
        """Return a new object of the class."""
        return self._java(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Return a static member."""
        found = getattr(self._java, name)
        if isinstance(found, JavaMember) or name == "MODULE$":
            self.__dict__[name] = found
        return found


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name, ``$`` before the name of one that another holds."""
    client = jvm._gateway_client  # noqa: SLF001
    known = _CLASSES.setdefault(client, {})
    if name not in known:
        known[name] = KnownClass(JavaClass(name, client))
    return known[name]


def scala_object(jvm: Any, name: str) -> Any:
    """Return a Scala ``object`` by its full name."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def scala_seq(jvm: Any, items: Sequence[Any]) -> Any:
    """Return a Scala ``Seq``: a call per element, while a Python list takes three on top."""
    cons = java_class(jvm, "scala.collection.immutable.$colon$colon")
    made = scala_object(jvm, "scala.collection.immutable.Nil")
    for item in reversed(items):
        made = cons(item, made)
    return made
