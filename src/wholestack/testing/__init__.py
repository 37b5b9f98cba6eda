"""Conformance suites for extension points, and what tests of users need; imported by tests only."""
