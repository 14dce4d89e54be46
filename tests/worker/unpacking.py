"""Other processes that unpack code, as workers do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any


def run_without(absent: str, code: bytes, call: str, *arguments: Any) -> str:
    """Unpack ``code`` in a process that lacks some libraries, and evaluate a call of it.

    ``call`` knows what was unpacked as ``code``, and the arguments.
    """
    program = f"""
import sys
for name in {absent.split()!r}:
    sys.modules[name] = None
import pickle
packed, arguments = pickle.load(sys.stdin.buffer)
code = pickle.loads(packed)
print({call})
"""
    command = [sys.executable, "-c", program]
    sent = pickle.dumps((code, arguments))
    done = subprocess.run(command, input=sent, capture_output=True, check=True)
    return done.stdout.decode().strip()
