"""``fs.s3a.*`` as options of obstore's `S3Store`.

Providers of credentials are obstore's own where they can be: keys, the environment, a token
of a web identity, a container, an instance, nobody.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, urlsplit

from puredelta.store.access.object_access import ObjectAccess, Untranslated

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
    credentials = _credentials(s3a)
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


def _credentials(s3a: Mapping[str, str]) -> dict[str, str] | Untranslated:
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
