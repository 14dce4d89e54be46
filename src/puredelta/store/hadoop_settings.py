"""Hadoop settings of S3, Azure and GCS as options of obstore.

Settings are those of Hadoop (``fs.s3a.*``, ``fs.azure.*``, ``fs.gs.*``), and options of obstore,
which win. Options may have the names of environment variables (``AWS_REGION``).

A key may end with the host of the account, as in Hadoop's drivers. The host in the location is
tried first, then the same account's other host, then the key without a host.

Credential providers of Hadoop become obstore's own where possible: keys, the environment, a web
identity token, a container, an instance, anonymous access.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from typing_extensions import assert_never

from puredelta.errors import InvalidRequestError, Message
from puredelta.store.location import Cloud, ObjectAccess, ObjectLocation, Untranslated


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPTIONS: Mapping[Cloud, frozenset[str]] = {
    Cloud.S3: _names("""
        access_key_id checksum_algorithm conditional_put container_authorization_token_file
        container_credentials_full_uri container_credentials_relative_uri default_region
        disable_bulk_delete disable_tagging endpoint endpoint_url_sts imdsv1_fallback
        metadata_endpoint region request_payer role_arn role_session_name s3_express
        secret_access_key server_side_encryption session_token skip_signature
        sse_bucket_key_enabled
        sse_customer_key_base64 sse_kms_key_id unsigned_payload
        virtual_hosted_style_request web_identity_token_file
        """),
    Cloud.AZURE: _names("""
        account_key account_name authority_host client_id client_secret credential_type
        disable_tagging encryption_key endpoint federated_token_file msi_endpoint msi_resource_id
        object_id sas_key skip_signature tenant_id token use_azure_cli use_emulator
        use_fabric_endpoint
        """),
    Cloud.GCS: _names("""
        application_credentials base_url bearer_token service_account service_account_key
        skip_signature
        """),
}
CREDENTIALS: Mapping[Cloud, frozenset[str]] = {
    Cloud.S3: frozenset({"access_key_id", "secret_access_key", "session_token", "skip_signature"}),
    Cloud.AZURE: _names("""
        account_key client_id client_secret credential_type federated_token_file msi_endpoint
        sas_key skip_signature tenant_id token use_azure_cli
        """),
    Cloud.GCS: _names("""
        application_credentials bearer_token service_account service_account_key skip_signature
        """),
}
"""The options that say who asks: given one of them, no other is taken from elsewhere."""
CLIENT_OPTIONS = _names("""
    allow_http allow_invalid_certificates connect_timeout http1_only http2_only pool_idle_timeout
    pool_max_idle_per_host proxy_ca_certificate proxy_excludes proxy_url read_timeout
    root_certificate timeout user_agent
    """)
_PREFIXES = {
    Cloud.S3: ("aws_",),
    Cloud.AZURE: ("azure_storage_", "azure_"),
    Cloud.GCS: ("google_",),
}
_ALIASES = {
    Cloud.S3: {"endpoint_url": "endpoint", "token": "session_token"},
    Cloud.AZURE: {
        "access_key": "account_key",
        "account": "account_name",
        "sas_token": "sas_key",
        "authority_id": "tenant_id",
    },
    Cloud.GCS: {"service_account_path": "service_account"},
}


def split_options(
    cloud: Cloud, options: Mapping[str, object]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of a store, and those of its HTTP client; other clouds' are left out.

    Raises:
        InvalidRequestError: no cloud has such an option (DELTA_ILLEGAL_OPTION).

    >>> split_options(Cloud.S3, {"AWS_REGION": "eu-west-1", "timeout": "5s", "account_name": "a"})
    ({'region': 'eu-west-1'}, {'timeout': '5s'})
    """
    config: dict[str, str] = {}
    client_options: dict[str, str] = {}
    for given, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        lower = given.lower()
        if (name := _client_option(lower)) is not None:
            client_options[name] = text
        elif (name := _store_option(cloud, lower)) is not None:
            config[name] = text
        elif not any(_store_option(other, lower) for other in Cloud):
            raise InvalidRequestError(Message.INVALID_WRITE_OPTION_STORAGE, option=given)
    return config, client_options


def _client_option(given: str) -> str | None:
    bare = {given.removeprefix(p) for prefixes in _PREFIXES.values() for p in prefixes}
    return next(iter(CLIENT_OPTIONS & (bare | {given})), None)


def _store_option(cloud: Cloud, given: str) -> str | None:
    for prefix in ("", *_PREFIXES[cloud]):
        if given.startswith(prefix):
            name = given.removeprefix(prefix)
            name = _ALIASES[cloud].get(name, name)
            if name in OPTIONS[cloud]:
                return name
    return None


_PREFIX = "fs.s3a."
_KEYS = frozenset({"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"})
_ANONYMOUS = frozenset({"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"})
# What obstore asks by itself, in its own order.
_OBSTORES_OWN = frozenset(
    {
        "EnvironmentVariableCredentialsProvider",
        "WebIdentityTokenCredentialsProvider",
        "WebIdentityTokenFileCredentialsProvider",
        "ContainerCredentialsProvider",
        "EC2ContainerCredentialsProviderWrapper",
        "IAMInstanceCredentialsProvider",
        "InstanceProfileCredentialsProvider",
        "DefaultAWSCredentialsProviderChain",
        "DefaultCredentialsProvider",
    }
)
_AWS_ENDPOINT = re.compile(r"s3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_CENTRAL_ENDPOINT = "s3.amazonaws.com"
_ENCRYPTION = {
    "AES256": "AES256",
    "SSE-S3": "AES256",
    "SSE-KMS": "aws:kms",
    "DSSE-KMS": "aws:kms:dsse",
    "SSE-C": "sse-c",
}


def translate_s3(bucket: str, settings: Mapping[str, str]) -> ObjectAccess | Untranslated:
    """Return the way to a bucket by the settings of Hadoop's s3a, those of the bucket first."""
    s3a = _of_bucket(bucket, settings)
    credentials = _s3_credentials(s3a)
    if isinstance(credentials, Untranslated):
        return credentials
    encryption = _encryption(s3a)
    if isinstance(encryption, Untranslated):
        return encryption
    config = {**credentials, **encryption, **_endpoint(bucket, s3a)}
    if _is_on(s3a, "requester.pays.enabled"):
        config["request_payer"] = "true"
    client_options = dict(_proxy(s3a))
    if config.get("endpoint", "").startswith("http://"):
        client_options["allow_http"] = "true"
    return ObjectAccess(url=f"s3://{bucket}", config=config, client_options=client_options)


def _of_bucket(bucket: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without their prefix; empty ones are unset."""
    own = f"{_PREFIX}bucket.{bucket}."
    everywhere = {k.removeprefix(_PREFIX): v for k, v in settings.items() if k.startswith(_PREFIX)}
    here = {k.removeprefix(own): v for k, v in settings.items() if k.startswith(own)}
    return {key: value.strip() for key, value in {**everywhere, **here}.items() if value.strip()}


def _s3_credentials(s3a: Mapping[str, str]) -> dict[str, str] | Untranslated:
    named = re.split(r"[,\s]+", s3a.get("aws.credentials.provider", "").strip(", \n\t"))
    providers = [name.rpartition(".")[2] for name in named if name]
    if providers and providers[0] in _ANONYMOUS:
        return {"skip_signature": "true"}
    for name, provider in zip(named, providers, strict=False):
        if provider not in _KEYS | _OBSTORES_OWN | _ANONYMOUS:
            return Untranslated(f"fs.s3a.aws.credentials.provider names {name}")
    if s3a.get("delegation.token.binding"):
        return Untranslated("fs.s3a.delegation.token.binding is set")
    keys = _keys(s3a, has_token=not providers or providers[0] != "SimpleAWSCredentialsProvider")
    if keys and (not providers or _KEYS.intersection(providers)):
        return keys
    if s3a.get("security.credential.provider.path"):
        return Untranslated("fs.s3a.security.credential.provider.path holds the keys")
    return {}


def _keys(s3a: Mapping[str, str], *, has_token: bool) -> dict[str, str]:
    if "access.key" not in s3a or "secret.key" not in s3a:
        return {}
    keys = {"access_key_id": s3a["access.key"], "secret_access_key": s3a["secret.key"]}
    if has_token and "session.token" in s3a:
        keys["session_token"] = s3a["session.token"]
    return keys


def _endpoint(bucket: str, s3a: Mapping[str, str]) -> dict[str, str]:
    config = {"region": s3a["endpoint.region"]} if "endpoint.region" in s3a else {}
    endpoint = s3a.get("endpoint", "")
    host = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}").netloc
    if not host or host == _CENTRAL_ENDPOINT:
        return config
    if (known := _AWS_ENDPOINT.fullmatch(host)) is not None:
        config.setdefault("region", known[1])
    if "//" not in endpoint:
        endpoint = (
            f"{'https' if _is_on(s3a, 'connection.ssl.enabled', 'true') else 'http'}://{host}"
        )
    if _is_on(s3a, "path.style.access") or _is_address(host) or "." in bucket:
        return {**config, "endpoint": endpoint, "virtual_hosted_style_request": "false"}
    scheme = endpoint.partition("//")[0]
    virtual = f"{scheme}//{bucket}.{host}"
    return {**config, "endpoint": virtual, "virtual_hosted_style_request": "true"}


def _is_address(host: str) -> bool:
    """Return whether a host is an address, below which there are no names of buckets."""
    try:
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True


def _encryption(s3a: Mapping[str, str]) -> dict[str, str] | Untranslated:
    named = s3a.get("encryption.algorithm", s3a.get("server-side-encryption-algorithm"))
    key = s3a.get("encryption.key", s3a.get("server-side-encryption.key", ""))
    if named is None:
        return {}
    algorithm = _ENCRYPTION.get(named.upper())
    if algorithm is None:
        return Untranslated(f"fs.s3a.encryption.algorithm is {named}")
    config = {"server_side_encryption": algorithm}
    if key:
        option = "sse_customer_key_base64" if algorithm == "sse-c" else "sse_kms_key_id"
        config[option] = key
    return config


def _proxy(s3a: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "proxy.host" not in s3a:
        return
    user, password = s3a.get("proxy.username"), s3a.get("proxy.password", "")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    scheme = "https" if _is_on(s3a, "proxy.ssl.enabled") else "http"
    port = f":{s3a['proxy.port']}" if "proxy.port" in s3a else ""
    yield "proxy_url", f"{scheme}://{login}{s3a['proxy.host']}{port}"


def _is_on(s3a: Mapping[str, str], key: str, default: str = "false") -> bool:
    return s3a.get(key, default).lower() == "true"


_PUBLIC = ".core.windows.net"
_FABRIC = ".fabric.microsoft.com"
_TOKEN_URL = re.compile(r"(https?://[^/]+)/([^/]+)/oauth2(?:/v2\.0)?/token/?")
_DEFAULT_AUTHORITY = "https://login.microsoftonline.com"


def translate_azure(
    location: ObjectLocation, settings: Mapping[str, str]
) -> ObjectAccess | Untranslated:
    """Return the way to a container by the settings of Hadoop's abfs and wasb."""
    azure = _AccountSettings(location=location, settings=settings)
    credentials = _azure_credentials(azure)
    if isinstance(credentials, Untranslated):
        return credentials
    config = {**_account(azure), **credentials}
    return ObjectAccess(url=f"az://{location.bucket}", config=config)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AccountSettings:
    location: ObjectLocation
    settings: Mapping[str, str]

    def get(self, key: str) -> str | None:
        """Return the setting of the account, else that of all accounts."""
        host = self.location.host
        others = {host, host.replace(".dfs.", ".blob."), host.replace(".blob.", ".dfs.")}
        for end in (host, *sorted(others - {host}), ""):
            found = self.settings.get(f"fs.azure.{key}.{end}" if end else f"fs.azure.{key}", "")
            if found.strip():
                return found.strip()
        return None


def _account(azure: _AccountSettings) -> dict[str, str]:
    location = azure.location
    emulated = azure.settings.get("fs.azure.storage.emulator.account.name")
    if emulated is not None and emulated in {location.host, location.account}:
        return {"use_emulator": "true"}
    if not location.account:
        return {}
    config = {"account_name": location.account}
    if location.host.endswith(_FABRIC):
        config["use_fabric_endpoint"] = "true"
    elif "." in location.host and not location.host.endswith(_PUBLIC):
        config["endpoint"] = f"https://{location.host.replace('.dfs.', '.blob.', 1)}"
    return config


def _azure_credentials(azure: _AccountSettings) -> dict[str, str] | Untranslated:
    kind = (azure.get("account.auth.type") or "").lower()
    if kind == "oauth":
        return _oauth(azure)
    if kind not in {"", "sharedkey", "sas"}:
        return Untranslated(f"fs.azure.account.auth.type is {kind}")
    provider = azure.get("sas.token.provider.type")
    if kind == "sas" and provider is not None and azure.get("sas.fixed.token") is None:
        return Untranslated(f"fs.azure.sas.token.provider.type is {provider}")
    location = azure.location
    of_container = azure.settings.get(f"fs.azure.sas.{location.bucket}.{location.host}")
    token = azure.get("sas.fixed.token") or of_container
    key = azure.get("account.key")
    if token and (kind == "sas" or not key):
        return {"sas_key": token.lstrip("?")}
    if key:
        return {"account_key": key}
    if (provider := azure.get("account.keyprovider")) is not None:
        return Untranslated(f"fs.azure.account.keyprovider is {provider}")
    return {}


def _oauth(azure: _AccountSettings) -> dict[str, str] | Untranslated:
    provider = azure.get("account.oauth.provider.type") or ""
    given = {
        "client_id": azure.get("account.oauth2.client.id"),
        "tenant_id": azure.get("account.oauth2.msi.tenant"),
    }
    match provider.rpartition(".")[2]:
        case "ClientCredsTokenProvider":
            endpoint = _TOKEN_URL.fullmatch(azure.get("account.oauth2.client.endpoint") or "")
            if endpoint is None:
                return Untranslated("fs.azure.account.oauth2.client.endpoint names no tenant")
            given["tenant_id"] = endpoint[2]
            given["client_secret"] = azure.get("account.oauth2.client.secret")
            given["authority_host"] = None if endpoint[1] == _DEFAULT_AUTHORITY else endpoint[1]
        case "MsiTokenProvider":
            given["msi_endpoint"] = azure.get("account.oauth2.msi.endpoint")
        case "WorkloadIdentityTokenProvider":
            given["federated_token_file"] = azure.get("account.oauth2.token.file")
        case _:
            return Untranslated(f"fs.azure.account.oauth.provider.type is {provider or 'unset'}")
    return {option: value for option, value in given.items() if value is not None}


_GCS_PREFIXES = ("fs.gs.", "google.cloud.")
_DEFAULT_KINDS = frozenset({"", "COMPUTE_ENGINE", "SERVICE_ACCOUNT_JSON_KEYFILE"})
"""With these a key counts where there is one. Hadoop's own default is ``COMPUTE_ENGINE``."""
_KEYFILE = "auth.service.account.json.keyfile"


def translate_gcs(bucket: str, settings: Mapping[str, str]) -> ObjectAccess | Untranslated:
    """Return the way to a bucket by the settings of Google's connector for Hadoop."""
    credentials = _gcs_credentials(settings)
    if isinstance(credentials, Untranslated):
        return credentials
    config = dict(credentials)
    client_options = {}
    if (url := settings.get("fs.gs.storage.root.url", "").rstrip("/")) not in {
        "",
        "https://storage.googleapis.com",
    }:
        config["base_url"] = url
        if url.startswith("http://"):
            client_options["allow_http"] = "true"
    if (proxy := settings.get("fs.gs.proxy.address", "").strip()) != "":
        client_options["proxy_url"] = proxy if "//" in proxy else f"http://{proxy}"
    return ObjectAccess(url=f"gs://{bucket}", config=config, client_options=client_options)


def _gcs_credentials(settings: Mapping[str, str]) -> dict[str, str] | Untranslated:
    kind = (_get(settings, "auth.type") or "").upper()
    if kind == "UNAUTHENTICATED" or (not kind and _get(settings, "auth.null.enable") == "true"):
        return {"skip_signature": "true"}
    if kind == "APPLICATION_DEFAULT":
        return {}
    if kind not in _DEFAULT_KINDS:
        return Untranslated(f"fs.gs.auth.type is {kind}")
    if (provider := _get(settings, "auth.access.token.provider.impl")) is not None:
        return Untranslated(f"fs.gs.auth.access.token.provider.impl is {provider}")
    if (keyfile := _get(settings, _KEYFILE)) is not None:
        return {"service_account": keyfile}
    email, key = (_get(settings, f"auth.service.account.{k}") for k in ("email", "private.key"))
    if email is None or key is None:
        if _get(settings, "auth.service.account.keyfile") is not None:
            return Untranslated("fs.gs.auth.service.account.keyfile is a P12 file")
        return {}
    account = {
        "type": "service_account",
        "client_email": email,
        "private_key": key.replace("\\n", "\n"),
        "private_key_id": _get(settings, "auth.service.account.private.key.id") or "",
    }
    return {"service_account_key": json.dumps(account)}


def _get(settings: Mapping[str, str], key: str) -> str | None:
    values = (settings.get(f"{prefix}{key}", "").strip() for prefix in _GCS_PREFIXES)
    return next((value for value in values if value), None)


_CREDENTIAL_FILES = "hadoop.security.credential.provider.path"


def translate(
    location: ObjectLocation, settings: Mapping[str, str], options: Mapping[str, object]
) -> ObjectAccess | Untranslated:
    """Return the way to the bucket of a location.

    ``settings`` are Hadoop's. Where ``options`` name credentials, those of the settings are left
    out as a whole, and so are settings that cannot be translated.
    """
    config, client_options = split_options(location.cloud, options)
    replaces = not CREDENTIALS[location.cloud].isdisjoint(config)
    found = _translated(location, settings)
    if isinstance(found, Untranslated):
        if not replaces:
            return found
        found = _translated(location, {})
        if isinstance(found, Untranslated):
            return found
    dropped = CREDENTIALS[location.cloud] if replaces else frozenset()
    kept = {key: value for key, value in found.config.items() if key not in dropped}
    if config.get("endpoint", config.get("base_url", "")).startswith("http://"):
        client_options.setdefault("allow_http", "true")
    if "endpoint" in config and "virtual_hosted_style_request" not in config:
        kept.pop("virtual_hosted_style_request", None)
    return replace(
        found,
        config={**kept, **config},
        client_options={**found.client_options, **client_options},
    )


def _translated(
    location: ObjectLocation, settings: Mapping[str, str]
) -> ObjectAccess | Untranslated:
    found = _of_cloud(location, settings)
    if (
        isinstance(found, ObjectAccess)
        and CREDENTIALS[location.cloud].isdisjoint(found.config)
        and settings.get(_CREDENTIAL_FILES, "").strip()
    ):
        return Untranslated(f"{_CREDENTIAL_FILES} holds the credentials")
    return found


def _of_cloud(location: ObjectLocation, settings: Mapping[str, str]) -> ObjectAccess | Untranslated:
    match location.cloud:
        case Cloud.S3:
            return translate_s3(location.bucket, settings)
        case Cloud.AZURE:
            return translate_azure(location, settings)
        case Cloud.GCS:
            return translate_gcs(location.bucket, settings)
        case _:
            assert_never(location.cloud)
