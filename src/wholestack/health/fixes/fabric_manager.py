"""The fabric manager, started again (NVIDIA Fabric Manager user guide)."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="fabric_manager",
            says="start the fabric manager again",
            causes=("fabric_manager.down",),
            source="NVIDIA Fabric Manager user guide, starting the service; systemctl(1)",
            settle_s=60,
        ),
        lines=lambda fault: ("systemctl restart nvidia-fabricmanager",),
        limit_s=120,
    ),
)
