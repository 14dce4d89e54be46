"""Recipes: upserts, snapshots, histories and change feeds, each as one call and one MERGE."""
