"""Each call of the store, and each write of data files, fails once, for every command."""
