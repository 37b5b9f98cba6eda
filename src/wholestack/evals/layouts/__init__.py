"""Readers of public layouts: one file a layout or family, one line in the table of ``catalog.py``."""
