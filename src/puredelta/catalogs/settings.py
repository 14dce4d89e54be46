"""Catalogs from the settings of a session.

``spark.sql.catalog.NAME = io.unitycatalog.spark.UCSingleCatalog`` with ``.uri``, ``.token`` and
``.auth.*`` are the settings of Unity Catalog's own connector; its JAR is not needed. The keys
``spark.puredelta.catalog.NAME.*`` add settings that the connector lacks. `KEYS` lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from puredelta.catalogs.catalog import ListedCatalog
from puredelta.catalogs.glue import GlueCatalog, glue_client
from puredelta.catalogs.tokens import (
    OAuthTokens,
    TokenSource,
    fixed_token,
    token_from_environment,
    token_from_file,
    token_of_process,
)
from puredelta.catalogs.transport import (
    TIMEOUT_S,
    HttpTransport,
    is_loopback,
    require_safe_url,
)
from puredelta.catalogs.unity import UnityCatalog
from puredelta.errors import InvalidRequestError, Message

SPARK_PREFIX = "spark.sql.catalog."
OWN_PREFIX = "spark.puredelta.catalog."
UNITY_CLASSES = frozenset(
    {"io.unitycatalog.spark.UCSingleCatalog", "io.unitycatalog.connectors.spark.UCSingleCatalog"}
)
SESSION_CATALOG = "spark_catalog"
_STORAGE = "storage."

KEYS: Mapping[str, str] = {
    "type": "`unity`, the default, or `glue`",
    "uri": "address of the server, as in the key of Spark",
    "token_file": "file with the token, read at each request",
    "token_env": "environment variable with the token, read at each request",
    "allow_http": "`true` lets the token go to another machine by plain HTTP",
    "local_files": "`true` lets a catalog on another machine name tables on local disks",
    "ca_file": "PEM file with the certificates that sign the server's",
    "timeout_s": "seconds that one request may take; 60",
    "region": "of a Glue catalog: the AWS region",
    "profile": "of a Glue catalog: the profile of AWS settings with its keys",
    "catalog_id": "of a Glue catalog: the AWS account, if it is another one",
    "endpoint": "of a Glue catalog: another address of the service",
    "storage.OPTION": "option of the object store by obstore's name, such as `endpoint`, `region`",
}
"""What ``spark.puredelta.catalog.NAME.*`` takes."""
_OWN_KEYS = frozenset(key for key in KEYS if not key.startswith(_STORAGE))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredCatalog:
    """A catalog with the settings for the storage of its tables."""

    catalog: ListedCatalog
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of object stores that every table of the catalog needs beside its keys."""


def catalog_names(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the session's catalogs of this library, sorted.

    >>> catalog_names({"spark.sql.catalog.main": "io.unitycatalog.spark.UCSingleCatalog"})
    ('main',)
    """
    found = {
        key.removeprefix(SPARK_PREFIX)
        for key, value in settings.items()
        if key.startswith(SPARK_PREFIX) and value.strip() in UNITY_CLASSES
    }
    found |= {
        key.removeprefix(OWN_PREFIX).removesuffix(end)
        for key in settings
        for end in (".uri", ".type")
        if key.startswith(OWN_PREFIX) and key.endswith(end)
    }
    return tuple(sorted(name for name in found - {SESSION_CATALOG} if "." not in name and name))


def find_catalog(settings: Mapping[str, str], name: str) -> ConfiguredCatalog | None:
    """Return the catalog of a name, None if the session has none; nothing is connected.

    Raises:
        InvalidRequestError: a setting of the catalog is wrong (INVALID_CONF_VALUE).
    """
    if name.lower() == SESSION_CATALOG:
        require_own_name(settings)
    if name not in catalog_names(settings):
        return None
    theirs = _below(settings, f"{SPARK_PREFIX}{name}.")
    own = _below(settings, f"{OWN_PREFIX}{name}.")
    for key in own:
        if key not in _OWN_KEYS and not key.startswith(_STORAGE):
            raise _wrong(f"{OWN_PREFIX}{name}.{key}", f"is unknown. Known are: {', '.join(KEYS)}")
    kind = own.get("type", "unity").strip().lower()
    options = {k.removeprefix(_STORAGE): v for k, v in own.items() if k.startswith(_STORAGE)}
    if kind == "glue":
        return ConfiguredCatalog(catalog=_glue(name, own), storage_options=options)
    if kind != "unity":
        raise _wrong(f"{OWN_PREFIX}{name}.type", f"is {kind!r}. Use unity or glue")
    return ConfiguredCatalog(catalog=_unity(name, theirs, own), storage_options=options)


def require_own_name(settings: Mapping[str, str]) -> None:
    """Refuse settings that make Spark's session catalog one of this library.

    Raises:
        InvalidRequestError: there is such a setting (INVALID_CONF_VALUE).
    """
    prefix = f"{OWN_PREFIX}{SESSION_CATALOG}."
    keys = [key for key in settings if key.startswith(prefix)]
    theirs = f"{SPARK_PREFIX}{SESSION_CATALOG}"
    if settings.get(theirs, "").strip() in UNITY_CLASSES:
        keys.append(theirs)
    if keys:
        raise _wrong(
            keys[0],
            f"is set, and {SESSION_CATALOG} is always Spark's own catalog. Give the other catalog "
            f"its own name ({SPARK_PREFIX}NAME), and say USE NAME.SCHEMA for short names",
        )


def _glue(name: str, own: Mapping[str, str]) -> GlueCatalog:
    region, endpoint, profile = own.get("region"), own.get("endpoint"), own.get("profile")
    return GlueCatalog(
        name=name,
        client=cache(partial(glue_client, region=region, endpoint=endpoint, profile=profile)),
        catalog_id=own.get("catalog_id"),
        allow_local=_is_true(own.get("local_files")),
    )


def _unity(name: str, theirs: Mapping[str, str], own: Mapping[str, str]) -> UnityCatalog:
    uri_key = f"{OWN_PREFIX if 'uri' in own else SPARK_PREFIX}{name}.uri"
    uri = own.get("uri") or theirs.get("uri")
    if not uri:
        raise _wrong(f"{SPARK_PREFIX}{name}.uri", "is not set: name the server of the catalog")
    allow_http = _is_true(own.get("allow_http"))
    url = require_safe_url(uri, setting=uri_key, allow_http=allow_http)
    transport = HttpTransport(timeout_s=_seconds(own, name), ca_file=own.get("ca_file"))
    return UnityCatalog(
        name=name,
        url=url,
        tokens=_tokens(name, theirs, own, transport, allow_http=allow_http),
        send=transport.send,
        allow_local=is_loopback(url) or _is_true(own.get("local_files")),
    )


def _below(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}


def _tokens(
    name: str,
    theirs: Mapping[str, str],
    own: Mapping[str, str],
    transport: HttpTransport,
    *,
    allow_http: bool,
) -> TokenSource:
    if "token_file" in own:
        return token_from_file(own["token_file"])
    if "token_env" in own:
        return token_from_environment(own["token_env"])
    auth = {k.removeprefix("auth.").lower(): v for k, v in theirs.items() if k.startswith("auth.")}
    kind = auth.get("type", "static").strip().lower()
    if "token" in theirs or kind == "static":
        known = theirs.get("token") or auth.get("token")
        return token_of_process(name) if known is None else fixed_token(known)
    if kind != "oauth":
        raise _wrong(
            f"{SPARK_PREFIX}{name}.auth.type",
            f"is {kind!r}, a class of the connector. Use static or oauth, or token_file",
        )
    missing = [key for key in ("uri", "clientId", "clientSecret") if not auth.get(_oauth(key))]
    if missing:
        raise _wrong(f"{SPARK_PREFIX}{name}.auth.oauth.{missing[0]}", "is not set")
    url = require_safe_url(
        auth[_oauth("uri")], setting=f"{SPARK_PREFIX}{name}.auth.oauth.uri", allow_http=allow_http
    )
    return OAuthTokens(
        transport.send,
        url=url,
        client_id=auth[_oauth("clientId")],
        client_secret=auth[_oauth("clientSecret")],
    )


def _oauth(key: str) -> str:
    return f"oauth.{key}".lower()


def _seconds(own: Mapping[str, str], name: str) -> float:
    text = own.get("timeout_s")
    try:
        seconds = TIMEOUT_S if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise _wrong(f"{OWN_PREFIX}{name}.timeout_s", f"is {text!r}, no number of seconds")
    return seconds


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"


def _wrong(key: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(Message.INVALID_CONF_VALUE_CATALOG, problem=problem, key=key)
