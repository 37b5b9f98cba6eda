"""Faults that can be injected into a simulated host, each with the source of its format and the truth about it."""
