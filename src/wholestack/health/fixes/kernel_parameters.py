"""Kernel parameters that hurt training, set until the next boot (sysctl(8); Linux, admin-guide/sysctl)."""

from wholestack.health.fixes.fix import About, Fault, ShellFix

SETTINGS = {"kernel.numa_balancing": "kernel.numa_balancing=0", "kernel.zone_reclaim": "vm.zone_reclaim_mode=0"}


def _lines(fault: Fault) -> tuple[str, ...]:
    return (f"sysctl -w {SETTINGS[fault.cause]}",)


FIXES = (
    ShellFix(
        about=About(
            name="kernel_parameters",
            says="set the kernel parameter",
            causes=tuple(SETTINGS),
            source="sysctl(8); Linux, Documentation/admin-guide/sysctl",
        ),
        lines=_lines,
    ),
)
