"""A host that is off or answers nothing, switched by its BMC (IPMI 2.0 Chassis Control, Redfish ComputerSystem.Reset).

Off and then on, instead of the one command that does both: each leaves a host alone that is so already, so that a fix
which was killed between the two is simply run again.
"""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="power_on",
            says="power the host on by its BMC",
            causes=("telemetry.off",),
            source="ipmitool(1), chassis power on; Redfish ComputerSystem.Reset On",
            settle_s=600,
            by_bmc=True,
            interrupts=False,
        ),
        lines=lambda fault: ("ipmitool chassis power on",),
        limit_s=120,
    ),
    ShellFix(
        about=About(
            name="power_cycle",
            says="power the host off, hard, and on again by its BMC",
            causes=("telemetry.unresponsive",),
            source="ipmitool(1), chassis power off and on; Redfish ComputerSystem.Reset ForceOff and On",
            settle_s=600,
            by_bmc=True,
        ),
        lines=lambda fault: ("ipmitool chassis power off", "ipmitool chassis power on"),
        limit_s=120,
    ),
)
