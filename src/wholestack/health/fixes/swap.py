"""Swap off, until the next boot: what /etc/fstab has is left to a person."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(name="swap", says="turn swap off", causes=("swap.on",), source="swapoff(8)"),
        lines=lambda fault: ("swapoff -a",),
        limit_s=300,
    ),
)
