"""The driver's JVM: classes, objects, collections, session state and Python contexts.

A class is looked up once by its full name: ``jvm.org.apache...`` would ask the JVM at every dot,
and a class asks it for a static method every time that is called, which takes as long as the
calls themselves. Wherever a function here takes a ``jvm``, any object of that JVM will do.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.udf import UserDefinedFunction, _wrap_function
from pyspark.util import PythonEvalType

from puredelta.errors import InvalidRequestError, Message

Answer = TypeVar("Answer")

CATALYST = "org.apache.spark.sql.catalyst"
JavaError: Any = Py4JJavaError
"""An exception of the JVM for which PySpark has no class."""
JVM_ERRORS = (Py4JError, PySparkException)
"""What a call into the JVM raises; PySpark knows the classes of some errors."""
_TRIES_MAX = 3
_BETWEEN_TEXTS = "\0,\0"
_PROXY_NAMES: dict[Any, Any] = {}
"""By connection to a JVM: a map with weak keys, which compares them by identity."""
_CLASSES: dict[Any, dict[str, KnownClass]] = {}
"""By connection to a JVM, and by name."""
_CONTEXTS: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


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


def jvm_of(spark: SparkSession) -> Any:
    """Return PySpark's view of the JVM of a classic session."""
    session: Any = spark
    return session._jvm


def session_of(spark: SparkSession) -> Any:
    """Return the JVM's own session behind a classic session."""
    session: Any = spark
    return session._jsparkSession


def once_per_session(ask: Callable[[SparkSession], Any]) -> Callable[[SparkSession], Any]:
    """Return a function that asks the JVM once for an object that a session has all its life."""
    known: WeakKeyDictionary[SparkSession, Any] = WeakKeyDictionary()

    @functools.wraps(ask)
    def asked(spark: SparkSession) -> Any:
        if spark not in known:
            known[spark] = ask(spark)
        return known[spark]

    return asked


@once_per_session
def parser_of(spark: SparkSession) -> Any:
    """Return the session's parser of SQL texts."""
    return session_of(spark).sessionState().sqlParser()


def context_of(spark: SparkSession) -> Any:
    """Return Spark's own context behind a classic session."""
    context: Any = spark.sparkContext
    if context not in _CONTEXTS:
        _CONTEXTS[context] = context._jsc.sc()
    return _CONTEXTS[context]


def cloned_session(session: Any, settings: Mapping[str, str]) -> Any:
    """Return a clone of the JVM's own session that has other settings."""
    clone = session.cloneSession()
    for key, value in settings.items():
        clone.conf().set(key, value)
    return clone


def has_jvm(spark: SparkSession) -> bool:
    """Return whether a session has a JVM in reach; one of Spark Connect has none."""
    return getattr(spark, "_jvm", None) is not None


def gateway_of(spark: SparkSession) -> Any:
    """Return Py4J's gateway of a classic session."""
    session: Any = spark
    return session.sparkContext._gateway


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name, ``$`` before the name of one that another holds."""
    client = jvm._gateway_client
    known = _CLASSES.setdefault(client, {})
    if name not in known:
        known[name] = KnownClass(JavaClass(name, client))
    return known[name]


def java_constant(jvm: Any, name: str, method: str) -> Any:
    """Return what a static method without arguments gives, which is the same every time."""
    known = java_class(jvm, name).__dict__
    key = f"{method}()"
    if key not in known:
        known[key] = getattr(java_class(jvm, name), method)()
    return known[key]


def has_class(spark: SparkSession, name: str) -> bool:
    """Return whether a class is on the class path of a classic session."""
    thread = java_class(jvm_of(spark), "java.lang.Thread").currentThread()
    try:
        thread.getContextClassLoader().loadClass(name)
    except Py4JError:
        return False
    return True


def java_array(spark: SparkSession, element: str, items: Sequence[Any]) -> Any:
    """Return a Java array; ``element`` is the full name of its class, or of a primitive type."""
    gateway = gateway_of(spark)
    made = gateway.new_array(java_class(gateway.jvm, element), len(items))
    for n, item in enumerate(items):
        made[n] = item
    return made


def java_type(jvm: Any, data_type: T.DataType) -> Any:
    """Return the JVM's type."""
    return java_class(jvm, "org.apache.spark.sql.types.DataType").fromJson(data_type.json())


def class_name(java: Any) -> str:
    """Return the class of an object without its package."""
    return str(_class_utils(java).getSimpleName(java))


def full_class_name(java: Any) -> str:
    """Return the class of an object."""
    return str(_class_utils(java).getName(java))


def _class_utils(java: Any) -> Any:
    """Return what names the class of an object in one call, where the object itself takes two."""
    return java_class(java, "org.apache.commons.lang3.ClassUtils")


def java_messages(error: BaseException) -> Iterator[str]:
    """Yield the messages of the Java exceptions behind an exception of PySpark or Py4J."""
    origin: Any = getattr(error, "_origin", None)
    if origin is None and isinstance(error, Py4JJavaError):
        origin = error.java_exception
    while origin is not None:
        yield str(origin.getMessage())
        origin = origin.getCause()


# --- functions that the JVM calls itself: several steps in one call ---------------------------

_FUNCTORS = "org.apache.commons.collections4"


def class_of(jvm: Any, name: str) -> Any:
    """Return Java's own object of a class."""
    return java_class(jvm, "java.lang.Class").forName(name)


def step(jvm: Any, method: str, argument: Any = None, kind: str = "") -> Any:
    """Return a transformer: it calls a method of what it is given, with an argument of a class."""
    steps = java_class(jvm, f"{_FUNCTORS}.TransformerUtils")
    if not kind:
        return steps.invokerTransformer(method)
    arrays = java_class(jvm, "java.lang.reflect.Array")
    given = []
    for element, item in (("java.lang.Class", class_of(jvm, kind)), ("java.lang.Object", argument)):
        array = arrays.newInstance(class_of(jvm, element), 1)
        array[0] = item
        given.append(array)
    return steps.invokerTransformer(method, *given)


def chained(jvm: Any, *steps: Any) -> Any:
    """Return a transformer that gives what one step returns to the next."""
    every = java_class(jvm, "java.util.ArrayList")()
    for one in steps:
        every.add(one)
    return java_class(jvm, f"{_FUNCTORS}.TransformerUtils").chainedTransformer(every)


def predicates_of(jvm: Any) -> Any:
    """Return the class that makes predicates, and puts them together."""
    return java_class(jvm, f"{_FUNCTORS}.PredicateUtils")


def method_step(target: Any, method: str, returned: str, parameter: str) -> Any:
    """Return a transformer: it calls a method of one object with what it is given."""
    handle = _bound(target, method, class_of(target, returned), class_of(target, parameter))
    return _as_interface(handle, f"{_FUNCTORS}.Transformer")


def scala_condition(predicate: Any) -> Any:
    """Return a predicate as Scala's ``Function1``."""
    boolean = java_class(predicate, "java.lang.Boolean").TYPE
    handle = _bound(predicate, "evaluate", boolean, class_of(predicate, "java.lang.Object"))
    function = _as_interface(handle, "java.util.function.Predicate")
    return java_class(predicate, "scala.jdk.javaapi.FunctionConverters").asScalaFromPredicate(
        function
    )


def _bound(target: Any, method: str, returned: Any, parameter: Any) -> Any:
    kind = java_class(target, "java.lang.invoke.MethodType").methodType(returned, parameter)
    lookup = java_class(target, "java.lang.invoke.MethodHandles").publicLookup()
    return lookup.bind(target, method, kind)


def _as_interface(handle: Any, name: str) -> Any:
    proxies = java_class(handle, "java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(class_of(handle, name), handle)


# --- objects that are Python's --------------------------------------------------------------


def name_proxy(proxy: Any, name: str) -> None:
    """Give an object that calls Python a name, for as long as the JVM holds it."""
    _proxy_names(proxy).put(proxy, name)


def proxy_name(java: Any) -> str | None:
    """Return the name of an object that calls Python, None if it has none.

    Objects are compared by identity, and none of them is asked: a call that waits for another call
    to Python would need a thread of its own, which there may not be.
    """
    name = None if java is None else _proxy_names(java).get(java)
    return None if name is None else str(name)


def _proxy_names(jvm: Any) -> Any:
    known = _PROXY_NAMES.get(jvm._gateway_client)
    if known is None:
        maker = java_class(jvm, "com.google.common.collect.MapMaker")()
        known = _PROXY_NAMES.setdefault(jvm._gateway_client, maker.weakKeys().makeMap())
    return known


# --- Scala ----------------------------------------------------------------------------------


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


def scala_map(jvm: Any, entries: Any) -> Any:
    """Return a Scala ``Map`` of a Python dictionary or of a Java map."""
    return java_class(jvm, "org.apache.spark.api.python.PythonUtils").toScalaMap(entries)


def java_map(jvm: Any, entries: Sequence[tuple[Any, Any]]) -> Any:
    """Return a Java map of objects of the JVM."""
    made = java_class(jvm, "java.util.HashMap")()
    for key, value in entries:
        made.put(key, value)
    return made


def scala_none(jvm: Any) -> Any:
    """Return Scala's ``None``."""
    return scala_object(jvm, "scala.None")


def scala_some(jvm: Any, value: Any) -> Any:
    """Return a Scala ``Option``, an empty one for ``None``."""
    return java_class(jvm, "scala.Option").apply(value)


def seq_items(seq: Any) -> tuple[Any, ...]:
    """Return the elements of a Scala ``Seq``."""
    return tuple(seq.apply(n) for n in range(seq.size()))


def text_items(seq: Any) -> tuple[str, ...]:
    """Return the elements of a Scala ``Seq`` of text: one call into the JVM for all."""
    joined = str(seq.mkString(_BETWEEN_TEXTS))
    return tuple(joined.split(_BETWEEN_TEXTS)) if joined or seq.nonEmpty() else ()


def text_option(option: Any) -> str | None:
    """Return the text in a Scala ``Option``, ``None`` if it is empty."""
    printed = str(option.toString())  # one call, where isDefined and get are two
    return printed.removeprefix("Some(")[:-1] if printed.startswith("Some(") else None


def text_map(mapping: Any) -> Mapping[str, str]:
    """Return a Scala ``Map`` of texts."""
    return {str(pair._1()): str(pair._2()) for pair in seq_items(mapping.toSeq())}


def insist(call: Callable[[], Answer], tries: int = _TRIES_MAX) -> Answer:
    """Return what a call of clean-up returns, which is made again where its connection was lost.

    It is one that may be made twice. When a user interrupts a call (Ctrl-C), Py4J closes its
    connection, and asks the JVM to close it, too. The JVM may close the one that is opened next
    instead: then the next call fails.

    Raises:
        Py4JError: there is no JVM any more, or it refuses.
    """
    try:
        return call()
    except Py4JJavaError:
        raise
    except Py4JError:
        if tries <= 1:
            raise
    return insist(call, tries - 1)


def require_unicode(text: str) -> None:
    """Refuse a text that no JVM can be sent: Py4J says nothing of the reason.

    Raises:
        InvalidRequestError: half of a surrogate pair is alone in it (INVALID_ARGUMENT).
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            Message.INVALID_ARGUMENT_UNICODE, text=text[max(0, error.start - 40) : error.end]
        ) from error


_DEFAULT_KEYS = ("fs.defaultFS", "fs.default.name")
"""Where Hadoop reads the default file system, by its name of today and its old one."""
_DEFAULTS: WeakKeyDictionary[SparkSession, tuple[tuple[str | None, ...], str]] = WeakKeyDictionary()
_JSON_WRITERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_CONFIGURATIONS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_PARQUET = "parquet."


def session_settings(spark: SparkSession) -> Mapping[str, str] | None:
    """Return every setting that was made, by its key; ``None`` if the session has no JVM in reach.

    ``spark.conf.getAll`` of a classic session asks the JVM for each key and each value.
    """
    if not has_jvm(spark):
        return None
    every = session_of(spark).conf().getAllAsJava()
    settings: dict[str, str] = json.loads(_json_writer(jvm_of(spark)).writeValueAsString(every))
    return settings


def hadoop_parquet_settings(spark: SparkSession) -> Mapping[str, str]:
    """Return what Hadoop's configuration of the context, XML files included, says of Parquet.

    Two calls of the JVM where it says nothing. Without a JVM in reach nothing is known.
    """
    if not has_jvm(spark):
        return {}
    context = spark.sparkContext
    if context not in _CONFIGURATIONS:  # the context makes one and keeps it
        _CONFIGURATIONS[context] = session_of(spark).sparkContext().hadoopConfiguration()
    found = _CONFIGURATIONS[context].getPropsWithPrefix(_PARQUET)
    if found.isEmpty():
        return {}
    bare: dict[str, str] = json.loads(_json_writer(jvm_of(spark)).writeValueAsString(found))
    return {f"{_PARQUET}{key}": value for key, value in bare.items()}


def default_file_system(spark: SparkSession) -> str | None:
    """Return where Spark looks for a path without a scheme, as a URI; ``None`` without a JVM."""
    if not has_jvm(spark):
        return None
    session = session_of(spark)
    hadoop, own = session.sparkContext().hadoopConfiguration(), session.conf()
    said = (hadoop.get(_DEFAULT_KEYS[0]), *(own.get(key, None) for key in _DEFAULT_KEYS))
    known = _DEFAULTS.get(spark)
    if known is None or known[0] != said:
        # The whole configuration is copied: ten times what the three settings cost.
        conf = session.sessionState().newHadoopConf()
        uri = java_class(jvm_of(spark), "org.apache.hadoop.fs.FileSystem").getDefaultUri(conf)
        known = _DEFAULTS[spark] = said, str(uri.toString())
    return known[1]


def _json_writer(jvm: Any) -> Any:
    """Return Jackson's mapper, one per JVM: a new one has to find out first what a map is."""
    if jvm not in _JSON_WRITERS:
        _JSON_WRITERS[jvm] = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    return _JSON_WRITERS[jvm]


def worker_context(context: SparkContext, *, python: str | None) -> SparkContext:
    """Return a Spark context for one job of Python code; nothing lasting is changed.

    Its workers run ``python``, or what the context says. Classes of the JVM are known: PySpark's
    view of it tries every imported package for them, at each use.
    """
    return cast("SparkContext", _OwnContext(context, python))


class _OwnContext:
    """A Spark context that differs from another in a few attributes."""

    def __init__(self, context: SparkContext, python: str | None) -> None:
        self._context = context
        if python is not None:
            self.pythonExec = python

    @functools.cached_property
    def _jvm(self) -> _KnownView:
        return _KnownView(self._context._jvm)

    def parallelize(self, items: Sequence[Any], num_slices: int) -> Any:
        """Do what the other context does, with the attributes of this one."""
        return type(self._context).parallelize(cast("SparkContext", self), items, num_slices)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _KnownView:
    """PySpark's view of the JVM, and the classes that running Python code takes."""

    def __init__(self, view: Any) -> None:
        self._view = view
        for name in ("PythonRDD", "PythonUtils", "SimplePythonFunction"):
            setattr(self, name, java_class(view, f"org.apache.spark.api.python.{name}"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


_MAKING = threading.RLock()


def mapped_in_arrow(
    rows: DataFrame,
    function: Callable[..., Any],
    schema: T.StructType,
    *,
    name: str,
    python: str | None,
) -> DataFrame:
    """Do what ``mapInArrow`` does, by workers that run ``python``, or what the context says.

    Plans show ``name``. PySpark's own asks for pandas, which it then does not use, and resolves
    columns by names that may hold dots.
    """
    spark = rows.sparkSession
    work = UserDefinedFunction(
        function, schema, name=name, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    columns = [F.col(f"`{name.replace('`', '``')}`") for name in rows.columns]
    with _workers_run(spark.sparkContext, python):
        made = rows._jdf.mapInArrow(work(*columns)._jc, False, None)  # noqa: FBT003
    return DataFrame(made, spark)


def python_function(spark: SparkSession, value: Any, *, python: str | None) -> Any:
    """Return a value as the JVM holds a function of Python: with what workers need to run it."""
    with _workers_run(spark.sparkContext, python):
        return _wrap_function(spark.sparkContext, value)


@contextmanager
def _workers_run(context: SparkContext, python: str | None) -> Iterator[None]:
    with _MAKING:
        known = context.pythonExec
        context.pythonExec = python or known
        try:
            yield
        finally:
            context.pythonExec = known
