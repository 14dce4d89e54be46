"""The Py4J edge is a room: no module outside of `puredelta.spark.jvm` touches the JVM."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
ROOM = SOURCE / "puredelta" / "spark" / "jvm"
RULES = SOURCE / "puredelta" / "inspection" / "migration.py"
"""Which private names a user's script should not touch: it only spells them."""
OUTSIDE = sorted(p for p in SOURCE.rglob("*.py") if ROOM not in p.parents and p != RULES)

PRIVATE = frozenset(
    {
        "_gateway",
        "_gateway_client",
        "_java_obj",
        "_jc",
        "_jconf",
        "_jdf",
        "_jrdd",
        "_jreader",
        "_jsc",
        "_jseq",
        "_jsparkSession",
        "_jvm",
        "_jwrite",
        "_origin",
    }
)
"""By which PySpark's objects hold those of the JVM."""
HANDLES = frozenset({"java"})
"""By which the room's own objects do (`Plan`, `Expression`, ...)."""
LOOK_UPS = frozenset({"java_class", "java_constant", "jvm_of", "session_of", "gateway_of"})
"""The room's ways from a session to the JVM."""


def touches(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if name in PRIVATE | HANDLES | LOOK_UPS:
                yield f"{node.lineno}: .{name}"
            case ast.Constant(value=str(name)) if name in PRIVATE:
                yield f"{node.lineno}: {name!r}"
            case ast.FunctionDef(name=name) if name in PRIVATE:
                yield f"{node.lineno}: def {name}"
            case ast.Import(names=names):
                yield from (f"{node.lineno}: {n.name}" for n in names if _is_py4j(n.name))
            case ast.ImportFrom(module=module, names=names):
                known = {n.name for n in names} & LOOK_UPS
                yield from (f"{node.lineno}: {name}" for name in sorted(known))
                if _is_py4j(module or ""):
                    yield f"{node.lineno}: {module}"


def _is_py4j(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "py4j" or module == "pyspark.java_gateway"


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_room_touches_the_jvm(path: Path) -> None:
    assert list(touches(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "spark._jvm",
        "rows._jdf.queryExecution()",
        "getattr(spark, '_jvm', None)",
        "plan.java.children()",
        "import py4j.protocol",
        "from py4j.protocol import Py4JError",
        "from puredelta.spark.jvm.gateway import java_class",
        "classes.jvm_of(spark)",
    ],
)
def test_what_counts_as_touching(code: str) -> None:
    assert len(list(touches(ast.parse(code)))) == 1
