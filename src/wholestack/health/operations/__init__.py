"""What acts on hosts after a sweep: stories of faults, drains, fixes, tickets. Nothing happens without ``--apply``."""
