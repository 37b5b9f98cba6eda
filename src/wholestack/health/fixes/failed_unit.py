"""A systemd unit that failed, started again."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="failed_unit",
            says="start the failed unit again",
            causes=("service.failed",),
            source="systemctl(1), restart",
            settle_s=10,
        ),
        lines=lambda fault: (f"systemctl restart {fault.unit()}",),
        limit_s=120,
    ),
)
