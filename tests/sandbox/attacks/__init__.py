"""Attacks on the sandbox: each succeeds as an ordinary process, on things that the test itself made."""
