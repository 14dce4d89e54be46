"""From the settings of a session to the way to one bucket.

Settings are those of Hadoop (``fs.s3a.*``, ``fs.azure.*``, ``fs.gs.*``), and options of obstore,
which win. Options may have the names of environment variables (``AWS_REGION``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from typing_extensions import assert_never

from puredelta.store.access.azure import translate_azure
from puredelta.store.access.gcs import translate_gcs
from puredelta.store.access.location import Cloud, ObjectLocation
from puredelta.store.access.object_access import ObjectAccess, Untranslated
from puredelta.store.access.options import CREDENTIALS, split_options
from puredelta.store.access.s3 import translate_s3

_CREDENTIAL_FILES = "hadoop.security.credential.provider.path"


def translate(
    location: ObjectLocation, settings: Mapping[str, str], options: Mapping[str, object]
) -> ObjectAccess | Untranslated:
    """Return the way to the bucket of a location.

    ``settings`` are Hadoop's. Where ``options`` name credentials, those of the settings are left
    out as a whole, and so are settings that cannot be translated.

    Raises:
        InvalidRequestError: no cloud has such an option.
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
