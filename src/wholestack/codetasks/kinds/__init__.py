"""Kinds of question: one file each, one line each in the table of ``catalog.py``."""
