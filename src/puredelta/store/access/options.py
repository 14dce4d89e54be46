"""The options of obstore's stores by cloud, and those of its HTTP client."""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.store.access.location import Cloud


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
            raise InvalidRequestError(
                f"{given!r} is no option of object storage. Options are those of obstore, such "
                "as 'region', 'endpoint' or 'aws_access_key_id', and Hadoop's, such as "
                "'fs.s3a.endpoint'.",
                code=ErrorCode.INVALID_WRITE_OPTION,
                option=given,
            )
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
