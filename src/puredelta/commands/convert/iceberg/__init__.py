"""An Iceberg table as its metadata describes it; the only room that imports pyiceberg."""
