"""Checks of this machine for PySpark with Delta tables, and of the access to a location."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from puredelta.errors import DeltaError
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY
from puredelta.version import __version__

PYTHON_MIN = (3, 10)
JAVA_MIN = 17
_SPARK_MIN = (4, 0)
_LIBRARIES = ("numpy", "pyarrow", "obstore", "pyroaring")
_WAIT_SECONDS = 30
_QUESTION = """
import importlib.metadata as m, json, sys
names = ["puredelta", "pyspark", "pyarrow", "obstore", "numpy"]
found = {}
for name in names:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: found[name] = None
print(json.dumps({"version": list(sys.version_info[:2]), "found": found}))
"""
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def environment_findings(environ: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Check Python, PySpark, Java, the workers' Python and remains of delta-spark.

    ``environ`` are the environment variables, by default those of this process.
    """
    environ = os.environ if environ is None else environ
    yield _python()
    yield _pyspark()
    yield java_finding(environ)
    yield from _libraries()
    yield workers_finding(environ)
    yield from delta_spark_findings(environ)


def _python() -> Finding:
    text = f"Python {sys.version.split()[0]} at {sys.executable}, puredelta {__version__}."
    return Finding(check="python", severity=Severity.OK, message=text)


def _pyspark() -> Finding:
    found = installed("pyspark") or installed("pyspark-client")
    if found is None:
        return Finding(
            check="pyspark",
            severity=Severity.ERROR,
            message="PySpark is not installed in this Python.",
            mend="pip install 'pyspark>=4.0,<5'",
        )
    if version_of(found) < _SPARK_MIN:
        return Finding(
            check="pyspark",
            severity=Severity.ERROR,
            message=f"PySpark {found} is too old.",
            mend="pip install 'pyspark>=4.0,<5'",
        )
    return Finding(check="pyspark", severity=Severity.OK, message=f"PySpark {found}.")


def java_finding(environ: Mapping[str, str]) -> Finding:
    """Check the Java that Spark would start."""
    home = environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environ.get("PATH"))
    mend = f"Install Java {JAVA_MIN} or newer and let JAVA_HOME name its directory."
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "No java on the PATH"
        return Finding(
            check="java",
            severity=Severity.ERROR,
            message=f"{where}. Spark needs it; reading a log does not.",
            mend=mend,
        )
    text = _output([java, "-version"]) or ""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    version = int(match[1]) if match else 0
    if version < JAVA_MIN:
        found = f"is version {version}" if version else f"says {text.strip()[:200]!r}"
        return Finding(
            check="java",
            severity=Severity.ERROR,
            message=f"{java} {found}; Spark 4 needs {JAVA_MIN} or newer.",
            mend=mend,
        )
    return Finding(check="java", severity=Severity.OK, message=f"Java {version}: {java}.")


def _libraries() -> Iterator[Finding]:
    versions = {name: installed(name) for name in _LIBRARIES}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        yield Finding(
            check="libraries",
            severity=Severity.ERROR,
            message=f"Not installed in this Python: {', '.join(missing)}.",
            mend=f"pip install {' '.join(missing)}",
        )
    else:
        text = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield Finding(check="libraries", severity=Severity.OK, message=f"{text}.")


def workers_finding(environ: Mapping[str, str]) -> Finding:
    """Check the Python of Spark's workers in a local session, by starting it."""
    chosen = environ.get("PYSPARK_PYTHON")
    python = shutil.which(chosen or "python3", path=environ.get("PATH"))
    name = f"PYSPARK_PYTHON={chosen}" if chosen else "python3 on the PATH (no PYSPARK_PYTHON)"
    mend = f"export PYSPARK_PYTHON={sys.executable}"
    if python is None:
        return Finding(
            check="workers-python",
            severity=Severity.ERROR,
            message=f"Spark's workers start {name}, which is not there.",
            mend=mend,
        )
    answer = _ask_python(python)
    if answer is None:
        return Finding(
            check="workers-python",
            severity=Severity.ERROR,
            message=f"Spark's workers start {name} ({python}), which does not run.",
            mend=mend,
        )
    version, found = answer
    missing = [n for n in ("puredelta", "pyarrow", "obstore", "numpy") if found.get(n) is None]
    if missing or version != list(sys.version_info[:2]):
        why = f"lacks {', '.join(missing)}" if missing else f"is Python {version[0]}.{version[1]}"
        return Finding(
            check="workers-python",
            severity=Severity.ERROR,
            message=f"Spark's workers start {name}: {python}, which {why}. This Python is "
            f"{sys.version_info[0]}.{sys.version_info[1]} at {sys.executable}. saveAsTable fails "
            "with DATA_SOURCE_NOT_FOUND, and workers cannot copy files.",
            mend=mend,
        )
    text = f"{name}: {python} has puredelta {found['puredelta']}, pyarrow {found['pyarrow']}."
    return Finding(check="workers-python", severity=Severity.OK, message=text)


def delta_spark_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Report remains of delta-spark: its package, its JARs, and settings that name it."""
    package = installed("delta-spark")
    if package is not None:
        yield Finding(
            check="delta-spark-package",
            severity=Severity.WARNING,
            message=f"delta-spark {package} is installed: 'from delta.tables import DeltaTable' "
            "is its class, which needs its JAR.",
            mend="pip uninstall delta-spark, or import puredelta.tables instead",
        )
    jars = [str(jar) for jar in _spark_jars(environ)]
    if jars:
        yield Finding(
            check="delta-spark-jar",
            severity=Severity.WARNING,
            message=f"delta-spark's JAR is on Spark's class path: {', '.join(jars)}. Sessions "
            "have delta-spark, and puredelta.activate leaves them alone.",
            mend="Remove the JAR, or leave the tables to delta-spark.",
        )
    for where, text in _settings(environ):
        if DELTA_EXTENSION in text or DELTA_CATALOG in text or "io.delta:delta" in text:
            yield Finding(
                check="delta-spark-settings",
                severity=Severity.WARNING if jars else Severity.ERROR,
                message=f"{where} configures sessions for delta-spark"
                + ("." if jars else ", but its JAR is not here: such a session runs no SQL."),
                mend="Remove spark.sql.extensions and spark.sql.catalog.spark_catalog (and "
                f"io.delta packages) from {where}, and start a new session.",
            )
    if package is None and not jars:
        yield Finding(
            check="delta-spark",
            severity=Severity.OK,
            message="Nothing of delta-spark is here. Scripts that import delta.tables need "
            "puredelta.activate(spark, delta_module=True).",
        )


def _spark_jars(environ: Mapping[str, str]) -> Iterator[Path]:
    homes = [Path(home) for home in (environ.get("SPARK_HOME"),) if home]
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin:
        homes.append(Path(spec.origin).parent)
    seen = set()
    for home in homes:
        for jar in sorted((home / "jars").glob("delta-*.jar")):
            if jar.resolve() not in seen:
                seen.add(jar.resolve())
                yield jar


def _settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "PYSPARK_SUBMIT_ARGS" in environ:
        yield "PYSPARK_SUBMIT_ARGS", environ["PYSPARK_SUBMIT_ARGS"]
    directories = [environ.get("SPARK_CONF_DIR"), environ.get("SPARK_HOME")]
    for number, directory in enumerate(directories):
        if directory:
            path = Path(directory) / ("conf" if number else "") / "spark-defaults.conf"
            if path.is_file():
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                yield str(path), "\n".join(x for x in lines if not x.lstrip().startswith("#"))


def installed(package: str) -> str | None:
    """Return the version of an installed package, None without it; nothing is imported."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_of(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version.

    >>> version_of("4.2.0.dev1")
    (4, 2, 0)
    """
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _ask_python(python: str) -> tuple[list[int], dict[str, str | None]] | None:
    text = _output([python, "-c", _QUESTION], merged=False)
    try:
        answer = json.loads(text or "")
        return answer["version"], answer["found"]
    except (ValueError, KeyError, TypeError):
        return None


def _output(command: list[str], *, merged: bool = True) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java and Python
            command, capture_output=True, text=True, check=False, timeout=_WAIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr if merged else done.stdout


def location_findings(log: TableLog) -> Iterator[Finding]:
    """Report whether the log at a location can be listed and, on a disk, written.

    Nothing is written, so write access to an object store is not checked.
    """
    try:
        next(iter(log.store.list_from(LOG_DIRECTORY)), None)
    except (DeltaError, OSError) as error:
        yield Finding(
            check="storage",
            severity=Severity.ERROR,
            message=f"{log.root_uri} cannot be listed: {error}",
            mend="Check the path, the credentials and the network; docs/storage.md lists the "
            "settings.",
        )
        return
    yield Finding(check="storage", severity=Severity.OK, message=f"{log.root_uri} can be read.")
    scheme, _, path = log.root_uri.partition(":")
    directory = f"{path}/{LOG_DIRECTORY}"
    if scheme == "file" and os.path.isdir(directory):  # noqa: PTH112 - a URI's path
        if os.access(directory, os.W_OK) and os.access(path, os.W_OK):
            yield Finding(
                check="permissions", severity=Severity.OK, message="The table can be written."
            )
        else:
            yield Finding(
                check="permissions",
                severity=Severity.WARNING,
                message=f"This user may read {path}, but not write it.",
                mend=f"Give the user write access to {path} and {directory}.",
            )
