"""Tickets: the evidence pack of a Finding for the one who acts on it."""
