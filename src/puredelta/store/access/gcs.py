"""``fs.gs.*`` as options of obstore's `GCSStore`, old and new names of the connector's settings."""

from __future__ import annotations

import json
from collections.abc import Mapping

from puredelta.store.access.object_access import ObjectAccess, Untranslated

_PREFIXES = ("fs.gs.", "google.cloud.")
_DEFAULT_KINDS = frozenset({"", "COMPUTE_ENGINE", "SERVICE_ACCOUNT_JSON_KEYFILE"})
"""With these a key counts where there is one. Hadoop's own default is ``COMPUTE_ENGINE``."""
_KEYFILE = "auth.service.account.json.keyfile"


def translate_gcs(bucket: str, settings: Mapping[str, str]) -> ObjectAccess | Untranslated:
    """Return the way to a bucket by the settings of Google's connector for Hadoop."""
    credentials = _credentials(settings)
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


def _credentials(settings: Mapping[str, str]) -> dict[str, str] | Untranslated:
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
    values = (settings.get(f"{prefix}{key}", "").strip() for prefix in _PREFIXES)
    return next((value for value in values if value), None)
