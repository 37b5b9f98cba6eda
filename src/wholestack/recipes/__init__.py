"""Recipes: complete experiment configurations as Python functions that return a config value."""
