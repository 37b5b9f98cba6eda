"""Tests of the wiring plan against what is seen."""
