"""Storage keys that a worker asks the driver for when those of its task expire.

The driver answers on a port of its own. A task knows a *grant*: the address, a name and a secret,
which Spark brings with the task. An answer leaves the machine only encrypted, by AES-GCM of the
package ``cryptography``; in a local session it stays on the loopback device.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import importlib.util
import pickle
import secrets
import socket
import time
from typing import Any, TypeAlias

Grant: TypeAlias = tuple[str, int, str, bytes, bool]
"""Host and port of the driver, name and secret of the grant, and whether answers are encrypted."""
Keys: TypeAlias = tuple[dict[str, Any], "int | None"]
"""Arguments of obstore's ``from_url``, and when their keys expire (ms since 1970)."""

QUESTION_BYTES_MAX = 512
ANSWER_BYTES_MAX = 1 << 20
ANSWER_SECONDS = 20
_CONNECT_SECONDS = 3
_LENGTH_BYTES = 4
_NONCE_BYTES = 12
_PAUSE_MS = 5_000
"""Between two questions of a process, if the driver did not answer."""
_PAUSE_PART = 10
"""A question without an answer, as to a port that a firewall hides, takes a tenth of the time."""
_PAUSE_MIN_MS = 1_000
_LEFT_PART = 3
_LEFT_MAX_MS = 300_000


def can_encrypt() -> bool:
    """Return whether this process has what encrypts answers."""
    return importlib.util.find_spec("cryptography") is not None


def renewal_time(expires_ms: int | None, now_ms: int) -> int | None:
    """Return when to ask for other keys: after two thirds of their time, or 5 minutes before.

    >>> renewal_time(9_000, 0), renewal_time(3_600_000, 0), renewal_time(None, 0)
    (6000, 3300000, None)
    """
    if expires_ms is None:
        return None
    return expires_ms - min(max(0, expires_ms - now_ms) // _LEFT_PART, _LEFT_MAX_MS)


def next_renewal(expires_ms: int | None, asked_ms: int, now_ms: int) -> int:
    """Return when to ask again after an answer, or after none: not at once.

    ``asked_ms`` is when the question was asked.

    >>> next_renewal(60_000, 0, 0), next_renewal(1_000, 0, 0)
    (40000, 1000)
    >>> next_renewal(None, 0, 10), next_renewal(None, 0, 3_000)
    (5010, 33000)
    """
    if expires_ms is None:
        return now_ms + max(_PAUSE_MS, _PAUSE_PART * (now_ms - asked_ms))
    return max(renewal_time(expires_ms, now_ms) or 0, now_ms + _PAUSE_MIN_MS)


def now_ms() -> int:
    """Return the time of this machine in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def ask(grant: Grant) -> Keys | None:
    """Return the keys of now; ``None``: the driver cannot be reached, or has none for the grant."""
    host, port, name, secret, encrypts = grant
    if encrypts and not can_encrypt():
        return None
    nonce = secrets.token_hex(_NONCE_BYTES)
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as connection:
            connection.sendall(question(name, secret, nonce))
            answer = _received(connection, time.monotonic() + ANSWER_SECONDS)
        return opened(answer, secret, nonce, encrypts=encrypts)
    except (OSError, ValueError):
        return None


def question(name: str, secret: bytes, nonce: str) -> bytes:
    """Return the line that asks for keys; only who knows the secret can write it."""
    return f"{name} {nonce} {_proof(secret, f'ask {nonce}'.encode())}\n".encode()


def asked(line: bytes) -> tuple[str, str, str]:
    """Return name, nonce and proof of a question.

    Raises:
        ValueError: it is none.
    """
    name, nonce, proof = line.decode("ascii").split()
    return name, nonce, proof


def is_proof(proof: str, secret: bytes, nonce: str) -> bool:
    """Return whether a question was asked with the secret of its grant."""
    return hmac.compare_digest(proof, _proof(secret, f"ask {nonce}".encode()))


def sealed(keys: Keys, secret: bytes, nonce: str, *, encrypts: bool) -> bytes:
    """Return keys as the answer to the question of a nonce, with their length before them.

    >>> answer = sealed(({"url": "s3://b"}, None), b"s" * 32, "n", encrypts=False)
    >>> opened(answer[4:], b"s" * 32, "n", encrypts=False)
    ({'url': 's3://b'}, None)
    >>> opened(answer[4:], b"t" * 32, "n", encrypts=False)
    Traceback (most recent call last):
    ValueError: the answer is not of this grant
    """
    content = pickle.dumps(keys)
    if encrypts:
        own = secrets.token_bytes(_NONCE_BYTES)
        answer: bytes = own + _cipher(secret).encrypt(own, content, nonce.encode())
    else:
        answer = _proof(secret, nonce.encode() + content).encode() + content
    return len(answer).to_bytes(_LENGTH_BYTES, "big") + answer


def opened(answer: bytes, secret: bytes, nonce: str, *, encrypts: bool) -> Keys:
    """Return the keys of an answer without its length.

    Raises:
        ValueError: it is not the answer of the driver to this question.
    """
    if encrypts:
        own, content = answer[:_NONCE_BYTES], answer[_NONCE_BYTES:]
        try:
            content = bytes(_cipher(secret).decrypt(own, content, nonce.encode()))
        except Exception as failure:
            raise ValueError("the answer is not of this grant") from failure
    else:
        proof, content = answer[:_PROOF_LENGTH], answer[_PROOF_LENGTH:]
        if not hmac.compare_digest(proof, _proof(secret, nonce.encode() + content).encode()):
            raise ValueError("the answer is not of this grant")
    keys: Keys = pickle.loads(content)  # noqa: S301 - proven to be the driver's
    return keys


_PROOF_LENGTH = 2 * hashlib.sha256().digest_size


def _proof(secret: bytes, content: bytes) -> str:
    return hmac.new(secret, content, hashlib.sha256).hexdigest()


def _cipher(secret: bytes) -> Any:
    ciphers = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
    # One key per grant and purpose: proofs of questions have the secret itself.
    return ciphers.AESGCM(hashlib.sha256(b"keys" + secret).digest())


def _received(connection: socket.socket, until: float) -> bytes:
    length = int.from_bytes(_exactly(connection, _LENGTH_BYTES, until), "big")
    if length > ANSWER_BYTES_MAX:
        raise ValueError("the answer is too long")
    return _exactly(connection, length, until)


def _exactly(connection: socket.socket, count: int, until: float) -> bytes:
    found = b""
    while len(found) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(count - len(found))
        if not part:
            raise ValueError("the driver has no keys for this grant")
        found += part
    return found
