"""Health of machines: which may train, which part is broken, who owns it."""
