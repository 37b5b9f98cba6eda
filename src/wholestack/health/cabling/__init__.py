"""Cabling: the wiring plan against what the fabric and LLDP see, as Findings and as a work order."""
