"""Classes and objects of the JVM by name, without asking the JVM at each dot."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name; ``jvm.org.apache...`` would ask the JVM at each dot."""
    return JavaClass(name, jvm._gateway_client)  # noqa: SLF001


def scala_object(jvm: Any, name: str) -> Any:
    """Return a Scala ``object`` by its full name."""
    return java_class(jvm, f"{name}$").__getattr__("MODULE$")
