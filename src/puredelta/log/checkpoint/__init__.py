"""Writing checkpoints, and removing log files that have expired."""
