"""Checkpoints, log cleanup, and the files that OPTIMIZE and VACUUM work on."""
