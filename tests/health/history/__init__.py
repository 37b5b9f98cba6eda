"""Histories of fleets: spans against a naive oracle, real sweeps, statistics."""
