"""Conformance suites: what every implementation of an extension point must pass, for ours and for yours."""
