"""Where the name nodes of a location answer HTTP, as Hadoop's own settings say it."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.store.base import Store
from puredelta.store.web_hdfs.client import WebHdfsClient
from puredelta.store.web_hdfs.store import WebHdfsStore

_WEB = {"webhdfs": "http", "swebhdfs": "https"}
_PORTS = {"http": 9870, "https": 9871}
_ANY_HOST = "0.0.0.0"  # noqa: S104 - what a name node is told to listen on
_USERS = ("HADOOP_USER_NAME", "SPARK_USER")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfs:
    """The file systems that a process without a JVM can read: `puredelta.store.registry`."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Hadoop's; Hadoop's own defaults stand where they say nothing."""
    user: str

    def has_scheme(self, scheme: str) -> bool:
        """Return whether a scheme is one of HDFS; nothing is connected."""
        return scheme.lower() == "hdfs" or scheme.lower() in _WEB

    def open(self, location: str, *, open_at: Callable[[str], Store]) -> Store:
        """Return the store of a location, which can be read.

        Raises:
            InvalidRequestError: the location names no name node.
        """
        parts = urlsplit(location.replace("%", "%25").replace("?", "%3F").replace("#", "%23"))
        if not parts.netloc:
            raise InvalidRequestError(
                f"{location} names no name node. Write hdfs://name-node:8020/path: no setting of "
                "the session is in reach where this is read.",
                code=ErrorCode.PATH_DOES_NOT_EXIST,
                path=location,
            )
        addresses = name_nodes(parts.scheme.lower(), parts.netloc, self.settings)
        root_uri = f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}".rstrip("/")
        client = WebHdfsClient(addresses=addresses, user=self.user)
        return WebHdfsStore(client, root_uri, open_at=open_at)

    def remove(self, location: str, *, recursive: bool = True) -> bool:  # noqa: ARG002
        """Refuse: nothing is written here.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"{location} can only be read here", code=ErrorCode.UNSUPPORTED_STORAGE, path=location
        )


def current_user() -> str:
    """Return who Hadoop's client would say that it is, where no password is asked for."""
    known = next((os.environ[name] for name in _USERS if os.environ.get(name)), None)
    if known is not None:
        return known
    with contextlib.suppress(OSError, KeyError):  # a container may know no name of its user
        return getpass.getuser()
    return "nobody"


def name_nodes(scheme: str, authority: str, settings: Mapping[str, str]) -> Sequence[str]:
    """Return the addresses of the name nodes of an authority, which may be a name for several.

    Keys are compared without case: options of a reader come in lower case.

    >>> name_nodes("hdfs", "master:8020", {})
    ('http://master:9870',)
    >>> name_nodes("hdfs", "master:8020", {"dfs.namenode.http-address": "0.0.0.0:50070"})
    ('http://master:50070',)
    >>> several = {"dfs.ha.namenodes.lake": "a, b"}
    >>> several |= {f"dfs.namenode.http-address.lake.{n}": f"{n}.example:9870" for n in "ab"}
    >>> name_nodes("hdfs", "lake", several)
    ('http://a.example:9870', 'http://b.example:9870')
    >>> name_nodes("swebhdfs", "master:9871", {})
    ('https://master:9871',)
    """
    settings = {key.lower(): value for key, value in settings.items()}
    only_safe = settings.get("dfs.http.policy", "").upper() == "HTTPS_ONLY"
    protocol = _WEB.get(scheme, "https" if only_safe else "http")
    key = f"dfs.namenode.{protocol}-address"
    service = authority.lower()
    nodes = [n.strip().lower() for n in settings.get(f"dfs.ha.namenodes.{service}", "").split(",")]
    several = [settings.get(f"{key}.{service}.{node}") for node in nodes if node]
    if found := [each for each in several if each]:
        return tuple(f"{protocol}://{each}" for each in found)
    if scheme in _WEB:
        return (f"{protocol}://{authority}",)
    host = authority.rpartition("@")[2].partition(":")[0]
    set_host, _, port = settings.get(key, "").rpartition(":")
    if not set_host or set_host == _ANY_HOST:
        set_host = host
    return (f"{protocol}://{set_host}:{port or _PORTS[protocol]}",)
