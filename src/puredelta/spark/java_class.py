"""Classes of the JVM by name, in one step."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name; ``jvm.org.apache...`` would ask the JVM at each dot."""
    return JavaClass(name, jvm._gateway_client)  # noqa: SLF001
