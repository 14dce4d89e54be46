from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.store.hadoop_settings import CLIENT_OPTIONS, OPTIONS, translate
from puredelta.store.location import Cloud, ObjectAccess, Untranslated, parse_object_location

KEYS = {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "SK"}
SDK = "software.amazon.awssdk.auth.credentials"


def found(
    location: str, settings: Mapping[str, str], options: Mapping[str, Any] | None = None
) -> ObjectAccess | Untranslated:
    parsed = parse_object_location(location)
    assert parsed is not None
    return translate(parsed, settings, options or {})


def config(location: str, settings: Mapping[str, str], **options: Any) -> dict[str, str]:
    access = found(location, settings, options)
    assert isinstance(access, ObjectAccess), access
    return dict(access.config)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        (KEYS, {"access_key_id": "AK", "secret_access_key": "SK"}),
        (
            {**KEYS, "fs.s3a.session.token": "T"},
            {"access_key_id": "AK", "secret_access_key": "SK", "session_token": "T"},
        ),
        (
            {
                **KEYS,
                "fs.s3a.session.token": "stale",
                "fs.s3a.aws.credentials.provider": (
                    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
                ),
            },
            {"access_key_id": "AK", "secret_access_key": "SK"},
        ),
        (
            {
                **KEYS,
                "fs.s3a.aws.credentials.provider": f"{SDK}.EnvironmentVariableCredentialsProvider",
            },
            {},
        ),
        (
            {
                **KEYS,
                "fs.s3a.aws.credentials.provider": (
                    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider,\n"
                    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
                ),
            },
            {"access_key_id": "AK", "secret_access_key": "SK"},
        ),
        (
            {
                "fs.s3a.aws.credentials.provider": (
                    "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
                )
            },
            {"skip_signature": "true"},
        ),
        ({"fs.s3a.access.key": "AK"}, {}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, {"region": "eu-west-1"}),
        (
            {
                "fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com",
                "fs.s3a.path.style.access": "true",
            },
            {
                "region": "eu-central-1",
                "endpoint": "https://s3.eu-central-1.amazonaws.com",
                "virtual_hosted_style_request": "false",
            },
        ),
        (
            {
                "fs.s3a.endpoint": "minio:9000",
                "fs.s3a.path.style.access": "TRUE",
                "fs.s3a.connection.ssl.enabled": "false",
            },
            {"endpoint": "http://minio:9000", "virtual_hosted_style_request": "false"},
        ),
        (
            {"fs.s3a.endpoint": "https://store.example:9000"},
            {
                "endpoint": "https://lake.store.example:9000",
                "virtual_hosted_style_request": "true",
            },
        ),
        (
            {"fs.s3a.endpoint": "http://127.0.0.1:9000"},
            {"endpoint": "http://127.0.0.1:9000", "virtual_hosted_style_request": "false"},
        ),
        (
            {
                "fs.s3a.endpoint.region": "us-east-1",
                "fs.s3a.bucket.lake.endpoint.region": "eu-west-3",
                "fs.s3a.bucket.other.endpoint.region": "ap-south-1",
            },
            {"region": "eu-west-3"},
        ),
        (
            {**KEYS, "fs.s3a.bucket.lake.access.key": "B", "fs.s3a.bucket.lake.secret.key": "BS"},
            {"access_key_id": "B", "secret_access_key": "BS"},
        ),
        ({"fs.s3a.requester.pays.enabled": "true"}, {"request_payer": "true"}),
        (
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn:k"},
            {"server_side_encryption": "aws:kms", "sse_kms_key_id": "arn:k"},
        ),
        (
            {"fs.s3a.server-side-encryption-algorithm": "AES256"},
            {"server_side_encryption": "AES256"},
        ),
    ],
)
@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
def test_s3(scheme: str, settings: dict[str, str], expected: dict[str, str]) -> None:
    assert config(f"{scheme}://lake/t", settings) == expected


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {**KEYS, "fs.s3a.aws.credentials.provider": "com.corp.VaultProvider"},
            "fs.s3a.aws.credentials.provider names com.corp.VaultProvider",
        ),
        (
            {
                "fs.s3a.aws.credentials.provider": (
                    "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"
                ),
                "fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r",
            },
            "AssumedRoleCredentialProvider",
        ),
        ({"fs.s3a.delegation.token.binding": "x.Y"}, "delegation.token"),
        ({"fs.s3a.security.credential.provider.path": "jceks://f"}, "security.credential"),
        ({"hadoop.security.credential.provider.path": "jceks://f"}, "hadoop.security.credential"),
        ({"fs.s3a.encryption.algorithm": "CSE-KMS"}, "fs.s3a.encryption.algorithm is CSE-KMS"),
    ],
)
def test_what_s3_settings_cannot_say(settings: dict[str, str], reason: str) -> None:
    answer = found("s3a://lake/t", settings)
    assert isinstance(answer, Untranslated)
    assert reason in answer.reason
    if "fs.s3a.encryption.algorithm" in settings:
        return
    own = {"access_key_id": "O", "secret_access_key": "OS"}
    assert config("s3a://lake/t", settings, **own) == own


ACCOUNT = "acc.dfs.core.windows.net"
OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"
CLIENT_CREDENTIALS = f"{OAUTH}.ClientCredsTokenProvider"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        (
            {f"fs.azure.account.key.{ACCOUNT}": "K", "fs.azure.account.key": "no"},
            {"account_key": "K"},
        ),
        ({"fs.azure.account.key.acc.blob.core.windows.net": "K"}, {"account_key": "K"}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": "K"}, {}),
        (
            {
                f"fs.azure.account.auth.type.{ACCOUNT}": "SAS",
                f"fs.azure.sas.fixed.token.{ACCOUNT}": "?sv=1&sig=x",
                f"fs.azure.account.key.{ACCOUNT}": "K",
            },
            {"sas_key": "sv=1&sig=x"},
        ),
        ({f"fs.azure.sas.c.{ACCOUNT}": "sv=1"}, {"sas_key": "sv=1"}),
        (
            {
                f"fs.azure.account.auth.type.{ACCOUNT}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{ACCOUNT}": CLIENT_CREDENTIALS,
                f"fs.azure.account.oauth2.client.id.{ACCOUNT}": "id",
                f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": "secret",
                f"fs.azure.account.oauth2.client.endpoint.{ACCOUNT}": (
                    "https://login.microsoftonline.com/tenant/oauth2/token"
                ),
            },
            {"client_id": "id", "client_secret": "secret", "tenant_id": "tenant"},
        ),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": f"{OAUTH}.MsiTokenProvider",
                "fs.azure.account.oauth2.client.id": "id",
            },
            {"client_id": "id"},
        ),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": f"{OAUTH}.WorkloadIdentityTokenProvider",
                "fs.azure.account.oauth2.client.id": "id",
                "fs.azure.account.oauth2.msi.tenant": "t",
                "fs.azure.account.oauth2.token.file": "/token",
            },
            {"client_id": "id", "tenant_id": "t", "federated_token_file": "/token"},
        ),
    ],
)
@pytest.mark.parametrize("scheme", ["abfs", "abfss"])
def test_azure(scheme: str, settings: dict[str, str], expected: dict[str, str]) -> None:
    named = config(f"{scheme}://c@{ACCOUNT}/t", settings)
    assert named == {"account_name": "acc", **expected}


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("az://c/t", {}),
        ("wasbs://c@acc.blob.core.windows.net/t", {"account_name": "acc"}),
        (
            "abfss://c@acc.dfs.core.chinacloudapi.cn/t",
            {"account_name": "acc", "endpoint": "https://acc.blob.core.chinacloudapi.cn"},
        ),
        (
            "abfss://ws@onelake.dfs.fabric.microsoft.com/x.Lakehouse/t",
            {"account_name": "onelake", "use_fabric_endpoint": "true"},
        ),
    ],
)
def test_accounts_of_azure(location: str, expected: dict[str, str]) -> None:
    assert config(location, {}) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"fs.azure.account.auth.type": "Custom"},
        {"fs.azure.account.auth.type": "OAuth"},
        {
            "fs.azure.account.auth.type": "OAuth",
            "fs.azure.account.oauth.provider.type": f"{OAUTH}.UserPasswordTokenProvider",
        },
        {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.token.provider.type": "x.Y"},
        {"fs.azure.account.keyprovider": "x.Y"},
    ],
)
def test_what_azure_settings_cannot_say(settings: dict[str, str]) -> None:
    assert isinstance(found(f"abfss://c@{ACCOUNT}/t", settings), Untranslated)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"fs.gs.auth.type": "APPLICATION_DEFAULT"}, {}),
        ({"fs.gs.auth.type": "COMPUTE_ENGINE"}, {}),
        (
            {
                "fs.gs.auth.type": "COMPUTE_ENGINE",
                "fs.gs.auth.service.account.json.keyfile": "/k.json",
            },
            {"service_account": "/k.json"},
        ),
        ({"fs.gs.auth.type": "UNAUTHENTICATED"}, {"skip_signature": "true"}),
        (
            {
                "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
                "fs.gs.auth.service.account.json.keyfile": "/k.json",
            },
            {"service_account": "/k.json"},
        ),
        (
            {"google.cloud.auth.service.account.json.keyfile": "/k.json"},
            {"service_account": "/k.json"},
        ),
        (
            {
                "fs.gs.auth.service.account.email": "a@b",
                "fs.gs.auth.service.account.private.key": "-----\\nK",
                "fs.gs.auth.service.account.private.key.id": "1",
            },
            {
                "service_account_key": '{"type": "service_account", "client_email": "a@b", '
                '"private_key": "-----\\nK", "private_key_id": "1"}'
            },
        ),
        (
            {"fs.gs.storage.root.url": "http://localhost:4443/"},
            {"base_url": "http://localhost:4443"},
        ),
    ],
)
def test_gcs(settings: dict[str, str], expected: dict[str, str]) -> None:
    assert config("gs://lake/t", settings) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER"},
        {"fs.gs.auth.access.token.provider.impl": "x.Y"},
        {"fs.gs.auth.service.account.keyfile": "/k.p12"},
    ],
)
def test_what_gcs_settings_cannot_say(settings: dict[str, str]) -> None:
    assert isinstance(found("gs://lake/t", settings), Untranslated)


def test_options_win_and_credentials_are_never_mixed() -> None:
    settings = {**KEYS, "fs.s3a.session.token": "T", "fs.s3a.endpoint.region": "eu-west-1"}
    options = {"AWS_ACCESS_KEY_ID": "O", "aws_secret_access_key": "OS", "region": "us-west-2"}
    assert config("s3://lake/t", settings, **options) == {
        "access_key_id": "O",
        "secret_access_key": "OS",
        "region": "us-west-2",
    }
    assert config("s3://lake/t", settings, skip_signature=True) == {
        "skip_signature": "true",
        "region": "eu-west-1",
    }


def test_an_endpoint_without_tls_is_allowed_where_it_is_named() -> None:
    for settings, options in (
        ({"fs.s3a.endpoint": "http://h:1", "fs.s3a.path.style.access": "true"}, {}),
        ({}, {"AWS_ENDPOINT_URL": "http://h:1"}),
    ):
        access = found("s3://lake/t", settings, options)
        assert isinstance(access, ObjectAccess)
        assert access.config["endpoint"] == "http://h:1"
        assert access.client_options["allow_http"] == "true"
    access = found("s3://lake/t", {"fs.s3a.endpoint": "h:1"})
    assert isinstance(access, ObjectAccess)
    assert "allow_http" not in access.client_options


def test_the_proxy_of_s3a() -> None:
    settings = {"fs.s3a.proxy.host": "p", "fs.s3a.proxy.port": "3128"}
    access = found("s3://lake/t", {**settings, "fs.s3a.proxy.username": "u@x"})
    assert isinstance(access, ObjectAccess)
    assert access.client_options["proxy_url"] == "http://u%40x:@p:3128"


def test_options_of_other_clouds_do_not_matter_and_unknown_ones_do() -> None:
    options = {"azure_storage_account_name": "acc", "google_service_account": "/k", "timeout": "9s"}
    access = found("s3://lake/t", {}, options)
    assert isinstance(access, ObjectAccess)
    assert access.config == {}
    assert access.client_options == {"timeout": "9s"}
    with pytest.raises(InvalidRequestError, match="'acces_key_id' is no option") as caught:
        found("s3://lake/t", {}, {"acces_key_id": "hidden"})
    assert caught.value.code is ErrorCode.INVALID_WRITE_OPTION
    assert "hidden" not in str(caught.value)


def test_an_access_travels_and_hides_its_secrets() -> None:
    proxy = {f"fs.s3a.proxy.{k}": v for k, v in (("host", "p"), ("username", "u"))}
    proxy["fs.s3a.proxy.password"] = "pw"
    access = found("s3a://lake/t", {**KEYS, "fs.s3a.session.token": "TT", **proxy})
    assert isinstance(access, ObjectAccess)
    assert repr(access) == str(access) == "ObjectAccess(url='s3://lake')"
    assert set(access.secrets) == {"AK", "SK", "TT", "http://u:pw@p"}
    again = pickle.loads(pickle.dumps(access))
    assert again == access
    assert again.identity() == access.identity()
    assert hash(access.identity())
    plain = pickle.dumps(access.arguments())
    assert b"puredelta" not in plain


@pytest.mark.parametrize("location", ["s3://", "s3:/bucket/t", "s3a:///t", "abfss://c@/t", "gs:t"])
def test_a_location_without_a_bucket(location: str) -> None:
    with pytest.raises(InvalidRequestError, match="names no"):
        parse_object_location(location)


@pytest.mark.parametrize("location", ["s3://b/../t", "s3://b/a\nb", "s3://b/a/../../t"])
def test_a_location_that_cannot_be(location: str) -> None:
    with pytest.raises(InvalidRequestError, match="not the location of a table"):
        parse_object_location(location)


@pytest.mark.parametrize(
    ("location", "root_uri"),
    [
        ("S3A://Lake/a b%20/./c//d/", "s3a://Lake/a b%20/c/d"),
        ("s3://lake", "s3://lake"),
        ("s3://lake/", "s3://lake"),
        ("s3://lake/a/../b", "s3://lake/b"),
        ("abfss://c@ACC.dfs.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("s3://lake/#x?y", "s3://lake/#x?y"),
    ],
)
def test_the_root_of_a_location(location: str, root_uri: str) -> None:
    parsed = parse_object_location(location)
    assert parsed is not None
    assert parsed.root_uri == root_uri


@pytest.mark.parametrize("location", ["/data/t", "t", "file:/t", "hdfs://h/t", "C:/t", "s3"])
def test_no_object_store(location: str) -> None:
    assert parse_object_location(location) is None


@pytest.mark.parametrize(
    ("cloud", "option"), [(cloud, option) for cloud in Cloud for option in sorted(OPTIONS[cloud])]
)
def test_obstore_knows_every_option(cloud: Cloud, option: str) -> None:
    obstore = pytest.importorskip("obstore")
    try:
        obstore.store.from_url(
            f"{cloud.value}://lake",
            config={"account_name": "a", option: "x"} if cloud is Cloud.AZURE else {option: "x"},
        )
    except obstore.exceptions.UnknownConfigurationKeyError:
        pytest.fail(f"{option} is unknown")
    except (obstore.exceptions.BaseError, ValueError, OSError):
        pass  # the value, not the name


def test_obstore_knows_the_options_of_the_client() -> None:
    obstore = pytest.importorskip("obstore")
    client_options = {"allow_http": "true", "proxy_url": "http://p", "read_timeout": "1s"}
    access = ObjectAccess(
        url="s3://lake", config={"region": "us-east-1"}, client_options=client_options
    )
    assert obstore.store.from_url(**access.arguments()) is not None
    assert set(access.arguments()["client_options"]) <= CLIENT_OPTIONS
