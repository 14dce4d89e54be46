"""Hadoop's client for S3, 12.5 MB of JARs instead of the 690 MB that its package asks for.

``python -m tests.servers.s3a`` prints PYSPARK_SUBMIT_ARGS that fetch it.
"""

from __future__ import annotations

_SDK = "2.35.4"
PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    f"software.amazon.awssdk:s3:{_SDK}",
    f"software.amazon.awssdk:s3-transfer-manager:{_SDK}",
    f"software.amazon.awssdk:sts:{_SDK}",
)
_NETTY = (
    "codec-http",
    "codec-http2",
    "codec",
    "transport",
    "common",
    "buffer",
    "handler",
    "resolver",
    "transport-classes-epoll",
    "transport-native-unix-common",
)
# The bundle of all of AWS, and what PySpark has already.
EXCLUDES = (
    "software.amazon.awssdk:bundle",
    "org.slf4j:slf4j-api",
    "commons-logging:commons-logging",
    "commons-codec:commons-codec",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
    "org.wildfly.openssl:wildfly-openssl",
    *(f"io.netty:netty-{name}" for name in _NETTY),
)


def submit_arguments() -> str:
    packages, excludes = ",".join(PACKAGES), ",".join(EXCLUDES)
    return f"--packages {packages} --exclude-packages {excludes} pyspark-shell"


if __name__ == "__main__":
    print(submit_arguments())  # noqa: T201
