"""Fixes for causes that have a safe, well-known remedy: one file a fix, one line each in ``catalog.py``."""
