"""Scaling laws: forecast the loss and the settings of a large run from small ones, with honest intervals."""
