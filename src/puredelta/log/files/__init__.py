"""The active files of a version as Arrow columns, with statistics from the log and from footers."""
