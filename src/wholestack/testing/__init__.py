"""Testing: conformance suites and faults to inject, for us and for whoever extends Wholestack."""
