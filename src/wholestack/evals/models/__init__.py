"""Backends of evaluated models; each is imported only when a model of its kind is opened."""
