"""Models that can be evaluated: one file a kind, opened by name in ``opening.py``."""
