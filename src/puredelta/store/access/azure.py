"""``fs.azure.*`` as options of obstore's `AzureStore`.

A key may end with the host of the account, as Hadoop's drivers read it: first the host that the
location names, then the same account's other host, then none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from puredelta.store.access.location import ObjectLocation
from puredelta.store.access.object_access import ObjectAccess, Untranslated

_PUBLIC = ".core.windows.net"
_FABRIC = ".fabric.microsoft.com"
_TOKEN_URL = re.compile(r"(https?://[^/]+)/([^/]+)/oauth2(?:/v2\.0)?/token/?")
_DEFAULT_AUTHORITY = "https://login.microsoftonline.com"


def translate_azure(
    location: ObjectLocation, settings: Mapping[str, str]
) -> ObjectAccess | Untranslated:
    """Return the way to a container by the settings of Hadoop's abfs and wasb."""
    azure = _AccountSettings(location=location, settings=settings)
    credentials = _credentials(azure)
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


def _credentials(azure: _AccountSettings) -> dict[str, str] | Untranslated:
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
