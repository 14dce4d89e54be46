"""The files that OPTIMIZE compacts, and the files that VACUUM keeps."""
