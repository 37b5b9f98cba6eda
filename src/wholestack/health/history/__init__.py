"""The history of a fleet's health: one SQLite file that keeps changes, not copies (decision 0010)."""
