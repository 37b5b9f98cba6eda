"""One module a check, or a few that share a subject."""
