"""The files that OPTIMIZE compacts, and the files that VACUUM keeps."""

from __future__ import annotations
