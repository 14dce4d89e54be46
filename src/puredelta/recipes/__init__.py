"""One call for what people write around MERGE by hand: upserts, snapshots, histories, changes."""
