"""Boot logs."""
