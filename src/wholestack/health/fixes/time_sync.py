"""The daemon that keeps the time, whichever of the known ones is enabled on the host."""

from wholestack.health.fixes.fix import About, ShellFix

UNITS = ("chronyd", "chrony", "systemd-timesyncd", "ntpsec", "ntpd", "ntp")
RESTART = (
    f"for unit in {' '.join(UNITS)}; do "
    'if systemctl -q is-enabled "$unit" 2>/dev/null; then systemctl restart "$unit"; exit $?; fi; done; '
    "echo none of them is enabled >&2; exit 5"
)

FIXES = (
    ShellFix(
        about=About(
            name="time_sync",
            says="start the daemon that keeps the time again",
            causes=("time.unsynchronised",),
            source="systemctl(1); chronyd(8), systemd-timesyncd(8)",
            settle_s=120,
        ),
        lines=lambda fault: (RESTART,),
    ),
)
