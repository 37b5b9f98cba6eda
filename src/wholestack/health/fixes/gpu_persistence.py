"""Persistence mode: ``nvidia-smi -pm`` (nvidia-smi manual page)."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="gpu_persistence",
            says="turn persistence mode on",
            causes=("gpu.persistence",),
            source="nvidia-smi(1), -pm",
        ),
        lines=lambda fault: ("nvidia-smi -pm 1",),
    ),
)
