"""Health as metrics for Prometheus: from a sweep and a history to a text, a file or an HTTP answer."""
