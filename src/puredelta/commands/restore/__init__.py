"""RESTORE: the newest version becomes what an older version was."""
