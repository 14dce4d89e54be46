"""Schemas and protocols that tests of features share."""

from __future__ import annotations

from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME
from puredelta.protocol.schema.types import LONG, StructField, StructType

PLAIN = StructType((StructField("id", LONG),))
BASE = ("appendOnly", "invariants")


def listing(*names: str) -> Protocol:
    readers = frozenset(n for n in names if n in FEATURES_BY_NAME and FEATURES_BY_NAME[n].reader)
    return Protocol(
        min_reader_version=3 if readers else 1,
        min_writer_version=7,
        reader_features=readers or None,
        writer_features=frozenset(names),
    )


def column(name: str, data_type: object = LONG, **metadata: object) -> StructType:
    return StructType((*PLAIN.fields, StructField(name, data_type, True, metadata)))
