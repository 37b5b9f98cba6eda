"""Hosts by way of their baseboard management controllers (BMC), which answer when the host itself no longer does."""
