"""What a boot log can show."""

from wholestack.health.check import Cause

UNKNOWN_LINES = Cause(
    code="bootlog.unknown",
    says="lines that no good boot has",
    owner="cluster team",
    remedy="read them; a fault: see to the part that they name; harmless: wholestack health bootlog accept",
    status="warn",
)
CRASH = Cause(
    code="bootlog.crash",
    says="the kernel crashed in part while it booted",
    owner="cluster team",
    remedy="drain; look at the stack for the driver, update or reinstall it, reboot; to the vendor if it returns",
)
MISSING_LINES = Cause(
    code="bootlog.missing",
    says="lines that every good boot has are missing",
    owner="cluster team",
    remedy="see whether the driver that says them is loaded and its device is there (lspci, dmesg); drain until it is",
)
OTHER_VALUE = Cause(
    code="bootlog.value",
    says="a familiar line with another value",
    owner="cluster team",
    remedy="see whether the part is whole (count, size, width, version); if changed on purpose, accept it or learn",
    status="warn",
)
OTHER_ORDER = Cause(
    code="bootlog.order",
    says="lines in another order than ever before",
    owner="cluster team",
    remedy="look at what came in between: a driver that was slow, tried again or was loaded by hand",
    status="warn",
)
MISSING_UNKNOWN = Cause(
    code="bootlog.lost",
    says="lines may be missing, or the log is not whole",
    owner="cluster team",
    remedy="take the whole log: journalctl -k -b -o short-monotonic, or dmesg right after the boot",
    status="unknown",
)
OTHER_KERNEL = Cause(
    code="bootlog.other_kernel",
    says="a kernel that the model does not know",
    owner="cluster team",
    remedy="learn some good boots of it; until then only values, order and crashes are judged",
    status="unknown",
)
TOO_FEW = Cause(
    code="bootlog.too_few",
    says="learnt from too few boots to tell everything",
    owner="cluster team",
    remedy="add good boots: wholestack health bootlog learn",
    status="unknown",
)
CAUSES = (
    UNKNOWN_LINES, CRASH, MISSING_LINES, OTHER_VALUE, OTHER_ORDER, MISSING_UNKNOWN, OTHER_KERNEL, TOO_FEW,
)  # fmt: skip
CHECKS = {
    "bootlog.unknown": "a line that no good boot has",
    "bootlog.missing": "a line missing that every good boot has",
    "bootlog.value": "a familiar line with another value",
    "bootlog.order": "a line out of the order that always held",
    "bootlog.reading": "whether the log and the model are enough to judge by",
}
"""What each looks at, by the name that Findings carry."""
