"""For users' tests: conformance suites that every implementation of an extension point passes, and faults to inject."""
