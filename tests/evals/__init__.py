"""Tests of wholestack.evals."""
