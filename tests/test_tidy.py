"""Rules about the code itself, checked like any other behaviour.

Sizes and words are a ratchet: whoever breaks a rule today is named in `ALLOWED`, and an entry
that is no longer needed fails, too, so that the list can only shrink.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "puredelta"
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted({path.parent for path in MODULES})

CODE_LINES_MIN = 40
CODE_LINES_MAX = 500
MODULES_OF_A_FOLDER_MIN = 3
TABLE_LOGIC_LINES_MAX = 175
FUNCTION_LINES = 60
PARAMETERS = 6

TABLES = frozenset({"error_table.py", "spark/session/delta_conf.py"})
"""Modules that are one row after the other: they may be as long as what they list."""

SMALL: Mapping[str, str] = {
    "__main__.py": "the module that Python runs",
    "activation/patches.py": "the one mechanism that replaces methods",
    "cli/doctor.py": "other commands start without its imports",
    "cli/entry.py": "it works without the extra of the command line",
    "commands/dml/named_tables.py": "recipes use it without a statement",
    "commands/dml/pipeline.py": "the ten stages, and nothing else",
    "commands/dml/resolve/partition_condition.py": "conditions of two commands",
    "commands/truncate.py": "one command",
    "exceptions.py": "names of delta.exceptions",
    "inspection/findings.py": "the value that all checks return",
    "log/files/clock.py": "time and ids, which callers pass in",
    "pip_utils.py": "a name of delta.pip_utils",
    "protocol/table/partitioning.py": "the identity of a partition",
    "protocol/schema/void_fields.py": "the rules of VOID columns",
    "protocol/table/row_tracking.py": "one table feature",
    "quantities.py": "numbers as people read them, for every layer",
    "recipes/compare.py": "two public calls",
    "spark/jvm/callbacks.py": "the one place where the JVM calls Python",
    "spark/scan/data_file.py": "the names of data files that Spark takes",
    "spark/resolve/statement_timestamp.py": "one rule (M-24)",
    "spark/resolve/table_attributes.py": "one kind of value, used by ten modules",
    "version.py": "the build reads it",
}
"""Modules below `CODE_LINES_MIN`, each with the reason that it stays alone."""

ONE_IMPORTER: Mapping[str, frozenset[str]] = {
    "methods of one class of PySpark": frozenset(
        {
            "activation/catalog_methods.py",
            "activation/merge_into.py",
            "activation/patched_methods.py",
            "activation/reader_methods.py",
            "activation/writer_methods.py",
        }
    ),
    "a public call of the package": frozenset(
        {
            "api.py",
            "commands/convert/undo.py",
            "pip_utils.py",
            "recipes/apply_changes.py",
            "recipes/compare.py",
        }
    ),
    "one group of commands of the command line, which imports no more than it needs": frozenset(
        {
            "cli/declared.py",
            "cli/entry.py",
            "cli/log_commands.py",
            "inspection/catalogs.py",
            "inspection/migration.py",
        }
    ),
    "one statement, or one family of statements": frozenset(
        {
            "commands/alter/columns.py",
            "commands/alter/constraints.py",
            "commands/truncate.py",
            "commands/write/tried_write.py",
            "statements/execute/alter.py",
            "statements/execute/cached.py",
            "statements/execute/stated.py",
            "statements/names/change_rows.py",
            "statements/parse/namespaces.py",
        }
    ),
    "one step of a conversion or an export, or one source of its files": frozenset(
        {
            "iceberg/data_files.py",
            "iceberg/manifests.py",
            "commands/convert/listing.py",
            "commands/convert/schema.py",
        }
    ),
    "one stage of a statement, or one part of its report": frozenset(
        {
            "commands/dml/pipeline.py",
            "commands/dml/resolve/evolve.py",
            "commands/dml/resolve/merge.py",
        }
    ),
    "one of two implementations, of which the other one is classic": frozenset(
        {
            "spark/catalog/connect_formats.py",
            "spark/values/connect_inserts.py",
            "statements/execute/connect_views.py",
        }
    ),
    "the messages are a table beside the classes": frozenset(
        {
            "error_table.py",
        }
    ),
    "one step of a commit, with its own proof": frozenset(
        {
            "log/commit/commit_retry.py",
            "log/commit/row_reconciliation.py",
            "log/commit/transaction.py",
        }
    ),
    "rows and files of a checkpoint are different concerns": frozenset(
        {
            "log/maintenance/checkpoint_write.py",
        }
    ),
    "one kind of reasoning about files": frozenset(
        {
            "inspection/damage/data_files.py",
            "log/changes/carried_rows.py",
            "log/skipping/calendar_gap.py",
            "log/skipping/derived.py",
            "spark/resolve/text_conditions.py",
        }
    ),
    "one algorithm of a recipe": frozenset(
        {
            "recipes/timeline.py",
        }
    ),
    "the side of its importer that touches the JVM": frozenset(
        {
            "spark/jvm/plan_parts.py",
            "spark/jvm/streams.py",
            "spark/jvm/worker_relation.py",
        }
    ),
    "one kind of session, or one way to data files": frozenset(
        {
            "spark/scan/late_planner.py",
            "spark/resolve/plan_metadata.py",
            "spark/resolve/text_from_message.py",
            "spark/scan/arrow_scan.py",
            "spark/scan/field_ids.py",
            "spark/scan/log_answers.py",
            "spark/scan/native_scan.py",
        }
    ),
    "one concern of requests to a catalog, which can be tested alone": frozenset(
        {
            "catalogs/glue.py",
            "catalogs/table_keys.py",
            "catalogs/unity.py",
            "log/managed/ratification.py",
        }
    ),
    "one kind of storage, or one concern of it": frozenset(
        {
            "store/object_client.py",
            "store/hadoop_settings.py",
            "store/local.py",
            "store/web_hdfs.py",
        }
    ),
    "code that is shipped to executors": frozenset(
        {
            "spark/connect/memory_importer.py",
            "worker/scan_rows.py",
        }
    ),
    "the check of bytes that others wrote, which can be tested alone": frozenset(
        {"worker/lookup/bloom_filters.py"}
    ),
}
"""Modules that one other module imports, by the reason that they stay alone."""

ALLOWED: frozenset[str] = frozenset()
"""Who may still break a rule; as `offenders` names them."""

BANNED = frozenset(
    word
    for line in (
        "told doors door fate fates keeping probe probed probes judgement judged lonely partner",
        "piece pieces gather gathered gathering likeness prompt promptly prompted",
        "upkeep committing worn crowded redrawn respelled spelled hides rival rivals",
    )
    for word in line.split()
)
"""Words of nobody's but our own, where Delta, Spark or Arrow have a word."""
PROSE = re.compile(r"\bthe reference\b", re.IGNORECASE)
"""delta-spark has a name."""


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


@cache
def code_lines(path: Path) -> int:
    """Count the lines of a module without blank lines, comments, docstrings and imports."""
    lines = enumerate(path.read_text().splitlines(), 1)
    used = {n for n, line in lines if line.strip() and not line.lstrip().startswith("#")}
    skipped: set[int] = set()
    for node in nodes_of(path):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or is_text:
            skipped.update(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            used.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(used - skipped)


def importers() -> Mapping[Path, set[Path]]:
    """Return the modules that import each module."""
    found: dict[Path, set[Path]] = {path: set() for path in MODULES}
    for path in [*MODULES, SOURCE / "__init__.pyi"]:
        for target in imported_modules(path):
            if target != path:
                found[target].add(path)
    return found


@cache
def imported_modules(path: Path) -> frozenset[Path]:
    """Return the modules of the package that a module imports."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("puredelta"):
            place = SOURCE.joinpath(*str(node.module).split(".")[1:])
            names = [place / f"{alias.name}.py" for alias in node.names]
            found.update(name if name.exists() else place.with_suffix(".py") for name in names)
    return frozenset(found & set(MODULES))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in {"self", "cls"}]


def words(identifier: str) -> list[str]:
    """The words of a name, in lower case: ``_LateFrame`` is late and frame."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier)
    return [word for word in spaced.lower().split("_") if word]


def identifiers(path: Path) -> Iterator[str]:
    yield path.stem
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr


def offenders() -> Iterator[str]:
    """What breaks a limit: ``rule: place``."""
    for path in MODULES:
        name = name_of(path)
        if path.name != "__init__.py":
            if name not in TABLES and code_lines(path) > CODE_LINES_MAX:
                yield f"long module: {name}"
            if name not in SMALL and code_lines(path) < CODE_LINES_MIN:
                yield f"small module: {name}"
        for function in functions(path):
            if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES:
                yield f"function: {name} {function.name}"
            if len(parameters(function)) > PARAMETERS:
                yield f"parameters: {name} {function.name}"
        for word in sorted({w for found in set(identifiers(path)) for w in words(found)} & BANNED):
            yield f"word: {name} {word}"
        if PROSE.search(path.read_text()):
            yield f"prose: {name}"
    for package in PACKAGES:
        modules = [path for path in package.glob("*.py") if path.name != "__init__.py"]
        if 0 < len(modules) < MODULES_OF_A_FOLDER_MIN:
            yield f"folder: {name_of(package)}"


def test_limits_hold_but_for_those_that_are_named() -> None:
    found = set(offenders())
    assert not found - ALLOWED, "made worse: cut it, or find the field's word"
    assert not ALLOWED - found, "better than the list says: take it off the list"


def test_tables_are_long_because_they_are_tables() -> None:
    for name in TABLES:
        body = tree_of(SOURCE / name).body
        logic = [node for node in body if isinstance(node, ast.FunctionDef)]
        lines = sum((node.end_lineno or 0) - node.lineno + 1 for node in logic)
        assert lines <= TABLE_LOGIC_LINES_MAX, f"{name} has become code"


def test_small_modules_are_small() -> None:
    assert not [name for name in SMALL if code_lines(SOURCE / name) >= CODE_LINES_MIN]


def test_a_module_with_one_importer_has_a_reason_to_be_alone() -> None:
    named = [name for names in ONE_IMPORTER.values() for name in names]
    assert len(named) == len(set(named))
    single = {name_of(path) for path, by in importers().items() if len(by) == 1}
    modules = {name for name in single if not name.endswith("__init__.py")}
    assert not modules - set(named), "merge it into its importer, or state the reason"
    assert not set(named) - modules, "no longer imported once: take it off the list"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_tidy(path: Path) -> None:
    text, tree = path.read_text(), tree_of(path)
    assert ast.get_docstring(tree), "a module starts by saying what it is for"
    assert not [w for w in ("TODO", "FIXME", "XXX", "NotImplementedError") if w in text]
    for node in functions(path):
        lazy = [n for n in ast.walk(node) if isinstance(n, ast.ImportFrom)]
        assert not [n for n in lazy if (n.module or "").startswith("puredelta")], node.name


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_package_says_in_one_sentence_who_lives_there(package: Path) -> None:
    docstring = ast.get_docstring(tree_of(package / "__init__.py"))
    assert docstring
    assert docstring.endswith(".")
    assert "\n\n" not in docstring


def test_no_circle_between_siblings() -> None:
    """The modules and folders of one folder, in every folder, have an order."""
    circles = []
    for package in PACKAGES:
        arrows: dict[str, set[str]] = {}
        for path in MODULES:
            if not path.is_relative_to(package):
                continue
            sibling = path.relative_to(package).parts[0]
            targets = [t for t in imported_modules(path) if t.is_relative_to(package)]
            others = {t.relative_to(package).parts[0] for t in targets} - {sibling}
            arrows.setdefault(sibling, set()).update(others)
        circles += [f"{name_of(package)}: {start}" for start in arrows if in_circle(start, arrows)]
    assert not circles


def in_circle(start: str, arrows: Mapping[str, set[str]]) -> bool:
    """Return whether arrows lead from a name back to it."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        for after in arrows.get(todo.pop(), ()):
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return start in seen


def test_class_names_mean_one_thing() -> None:
    """A public class has one home; two of one name would have two meanings."""
    names = Counter(
        node.name
        for path in MODULES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in names.items() if count > 1]


def test_one_way_to_commit() -> None:
    """`Transaction.commit` has one caller: a second would forget what the first does."""
    callers = [
        name_of(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "commit"
    ]
    assert callers == ["commands/finish.py"]


EDGE = "statements/execute/session_texts.py"
"""The one module above the Spark layer that asks for the kind of session, once, to choose."""


def test_one_place_asks_for_the_kind_of_session() -> None:
    """Both kinds of sessions are behind one protocol, and the Spark layer has one answer."""
    places = [
        name_of(path)
        for path in MODULES
        if not name_of(path).startswith("spark/")
        for node in nodes_of(path)
        if _asks_for_the_kind(node)
    ]
    assert places == [EDGE], Counter(places)


def _asks_for_the_kind(node: ast.AST) -> bool:
    """Return whether a session is asked, or what was noted of it: `is_connect` of both."""
    match node:
        case ast.Call(func=ast.Name(id="is_connect")) | ast.Attribute(attr="is_connect"):
            return True
        case _:
            return False
