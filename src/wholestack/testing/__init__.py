"""For the tests of users: conformance suites for every extension point, and faults to inject."""
