"""How one bucket is reached: all that `obstore.store.from_url` takes, as plain values.

Nothing here connects, reads the environment or imports obstore. What a setting does not say
is left to obstore, which asks the environment of the process and the machine it runs on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

REQUEST_SECONDS = 60
"""How long one request may take, its body included."""
CONNECT_SECONDS = 5
RETRIES_MAX = 8
RETRY_SECONDS = 120
"""How long a request that fails is repeated; the time between is random and grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAccess:
    """The way to one bucket or container; it may be pickled, and shows no secret as text."""

    url: str
    """``s3://bucket``, ``gs://bucket`` or ``az://container``, without a path."""
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of obstore's store, by its names; some are secrets."""
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of its HTTP client."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `obstore.store.from_url`: values of Python's own types.

        They may go to a worker that has no puredelta.
        """
        backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5)}
        return {
            "url": self.url,
            "config": dict(self.config),
            "client_options": {
                "timeout": f"{REQUEST_SECONDS}s",
                "connect_timeout": f"{CONNECT_SECONDS}s",
                **self.client_options,
            },
            "retry_config": {
                "max_retries": RETRIES_MAX,
                "retry_timeout": timedelta(seconds=RETRY_SECONDS),
                "backoff": backoff,
            },
        }

    def identity(self) -> tuple[object, ...]:
        """Return what is equal for equal accesses, as a key of a dictionary."""
        return (
            self.url,
            tuple(sorted(self.config.items())),
            tuple(sorted(self.client_options.items())),
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may show."""
        hidden = [value for key, value in self.config.items() if is_secret(key)]
        hidden += [value for value in self.client_options.values() if "@" in value]
        return tuple(value for value in hidden if value)


@dataclass(frozen=True, slots=True)
class Untranslated:
    """The settings name a way to the bucket that obstore does not know."""

    reason: str


_SECRETS = ("key", "secret", "token", "password", "credential")
_NO_SECRETS = frozenset({"sse_bucket_key_enabled", "sse_kms_key_id", "credential_type"})


def is_secret(option: str) -> bool:
    """Return whether the value of an option is to be kept out of every text.

    >>> [is_secret(option) for option in ("secret_access_key", "region")]
    [True, False]
    """
    return option not in _NO_SECRETS and any(part in option for part in _SECRETS)
