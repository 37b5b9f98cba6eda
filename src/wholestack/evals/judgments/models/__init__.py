"""Models of reviewers: one file each, one line in the table of ``catalog.py``."""
