"""Docker and containerd, started again. With live-restore, containers go on; else they end: only on idle hosts."""

from wholestack.health.fixes.fix import About, Fault, ShellFix

UNITS = {"docker.down": "docker", "containerd.down": "containerd"}


def _lines(fault: Fault) -> tuple[str, ...]:
    return (f"systemctl restart {UNITS[fault.cause]}",)


FIXES = (
    ShellFix(
        about=About(
            name="containers",
            says="start Docker or containerd again",
            causes=tuple(UNITS),
            source="Docker documentation, start the daemon; systemctl(1)",
            settle_s=60,
        ),
        lines=_lines,
        limit_s=120,
    ),
)
