"""The edge to the JVM: Catalyst plans, Py4J and the Spark UI."""

from __future__ import annotations
