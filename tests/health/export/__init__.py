"""Metrics: the text, what is told, the server, and the real Prometheus and Alertmanager."""
