"""Wholestack: train a large model without surprises. See docs/architecture.md for the house at a glance."""

__version__ = "0.1.0"
__all__ = ["__version__"]
