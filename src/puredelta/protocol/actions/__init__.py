"""The actions of a commit: JSON, paths, history entries and deletion vectors."""
