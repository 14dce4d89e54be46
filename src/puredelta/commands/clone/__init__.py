"""CLONE: a new table over the files of another one."""
