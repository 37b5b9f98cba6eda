"""What a probe can say of a device."""

from wholestack.health.check import Cause

EXACT, MEMORY, PACE, FREE = "device.exact", "device.memory", "device.pace", "device.free"
"""Names of the checks."""

WRONG_PRODUCT = Cause(
    code="device.wrong_product",
    says="multiplies wrong",
    owner="vendor",
    remedy="take it out of service at once and have it replaced: results since its last good probe are in doubt",
)
WRONG_CHECKSUM = Cause(
    code="device.wrong_checksum",
    says="a check did not repeat: this CPU, not the device, may be at fault",
    owner="vendor",
    status="unknown",
    remedy="probe the cores (--devices cpu), then this device again",
)
WRONG_MEMORY = Cause(
    code="device.wrong_memory",
    says="its memory does not give back what was written",
    owner="vendor",
    remedy="take it out of service; run the vendor's memory test and have it replaced",
)
GAVE_UP = Cause(
    code="device.gave_up",
    says="failed while it was probed",
    owner="cluster team",
    status="unknown",
    remedy="see the kernel log; probe again with less --memory, then reset the device",
)
SLOW = Cause(
    code="device.slow",
    says="slower than it should be",
    owner="data centre",
    remedy="compare clocks, power limit, temperature and cooling with a device that keeps pace; else have it replaced",
)
SLOW_AFTER_REPAIR = Cause(
    code="device.slow_after_repair",
    says="corrected, and slower than it should be",
    owner="vendor",
    remedy="have it replaced: it computes right again, and would still hold up every other device of a job",
)
TOO_LITTLE_TIME = Cause(
    code="device.too_little_time",
    says="not looked at for long enough",
    owner="cluster team",
    status="unknown",
    remedy="give more --seconds",
)
UNDECIDED = Cause(
    code="device.undecided",
    says="time was up before its pace could be told",
    owner="cluster team",
    status="unknown",
    remedy="give more --seconds",
)
BUSY = Cause(
    code="device.busy",
    says="the device is busy",
    owner="job owner",
    status="unknown",
    remedy="probe between jobs, or give --even-if-busy (its pace is not judged then)",
)
USERS_UNKNOWN = Cause(
    code="device.users_unknown",
    says="busy or not cannot be told",
    owner="cluster team",
    status="unknown",
    remedy="run nvidia-smi by hand and mend what it lacks; or name the device with --idle if you know that nothing "
    "uses it (its pace is not judged then)",
)
NOT_REACHED = Cause(
    code="device.not_reached",
    says="its GPUs cannot be probed",
    owner="cluster team",
    status="unknown",
    remedy="install a torch that sees them, or give --devices cpu to probe the cores alone",
)
CAUSES = (
    WRONG_PRODUCT, WRONG_CHECKSUM, WRONG_MEMORY, GAVE_UP, SLOW, SLOW_AFTER_REPAIR, TOO_LITTLE_TIME, UNDECIDED,
    BUSY, USERS_UNKNOWN, NOT_REACHED,
)  # fmt: skip
CHECKS = {
    EXACT: "whether a device multiplies right",
    MEMORY: "whether its memory gives back what was written",
    PACE: "whether it is as fast as its kind",
    FREE: "whether it can be probed now",
}
"""What each looks at, by name."""
