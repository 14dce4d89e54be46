"""The data files of a table as rows of a DataFrame."""

from __future__ import annotations
