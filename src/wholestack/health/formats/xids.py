"""What an Xid (an error that the NVIDIA driver logs, by number) means, and who has to act.

Source: NVIDIA, "Xid Errors", catalogue for Ampere and later (docs.nvidia.com/deploy/xid-errors, table "Xids", columns
of immediate and investigatory action) and, for 48, 63, 64, 92, 94 and 95, "GPU Memory Error Management". Texts are
ours. The catalogue calls many codes "unused, contact support": they are not listed here and are a warning, as is any
number that is newer than this table.
"""

from typing import Literal

XidClass = Literal[
    "off_bus", "memory", "remap_event", "remap_failure", "contained", "reset", "gsp", "hardware", "nvlink", "nvlink5",
    "power_cable", "wear", "recovery", "application", "ignore", "unknown",
]  # fmt: skip

_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_VIDEO_ENGINES = (60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139, 142)

MEANINGS: dict[int, tuple[XidClass, str]] = {
    8: ("application", "GPU stopped processing a channel"),
    11: ("application", "invalid or corrupted push buffer"),
    13: ("application", "graphics engine exception: mostly an access out of range in the program"),
    14: ("application", "channel error"),
    25: ("application", "invalid or illegal push buffer"),
    31: ("application", "GPU memory page fault: mostly a wrong address in the program"),
    32: ("application", "invalid or corrupted push buffer (DMA controller)"),
    37: ("application", "driver firmware met an unknown method"),
    38: ("reset", "driver firmware watchdog ran out"),
    43: ("application", "GPU stopped processing: the program was ended"),
    44: ("application", "fault during a context switch"),
    45: ("application", "work was removed after an earlier error or the end of the program"),
    46: ("reset", "GPU stopped processing"),
    48: ("memory", "uncorrectable (double-bit) ECC error"),
    54: ("power_cable", "auxiliary power is not connected to the board"),
    57: ("hardware", "training of the memory link failed"),
    58: ("hardware", "memory error"),
    61: ("reset", "internal micro-controller breakpoint"),
    62: ("reset", "internal micro-controller halt"),
    63: ("remap_event", "a memory row (or page) was marked for remapping; a reset brings it into effect"),
    64: ("remap_failure", "a memory row (or page) could not be remapped"),
    66: ("application", "illegal access by the driver"),
    67: ("application", "illegal access by the driver"),
    69: ("application", "graphics engine class error"),
    73: ("application", "video encoder error"),
    74: ("nvlink", "NVLink error"),
    78: ("reset", "a virtual GPU did not start"),
    79: ("off_bus", "GPU has fallen off the bus"),
    80: ("application", "corrupted data sent to the GPU"),
    92: ("wear", "high rate of corrected ECC errors"),
    93: ("wear", "infoROM written too often"),
    94: ("contained", "contained memory error: only the program that met it was ended"),
    95: ("memory", "uncontained memory error"),
    106: ("ignore", "test message"),
    107: ("ignore", "test message"),
    109: ("reset", "context switch ran out of time"),
    110: ("reset", "security fault"),
    119: ("gsp", "the GPU system processor (GSP) does not answer"),
    120: ("gsp", "error of the GPU system processor (GSP)"),
    121: ("hardware", "error of the chip-to-chip link (C2C)"),
    122: ("hardware", "reading the board's flash failed"),
    123: ("hardware", "writing the board's flash failed"),
    124: ("hardware", "erasing the board's flash failed"),
    125: ("wear", "file system error of the infoROM"),
    136: ("nvlink", "training of an NVLink failed"),
    137: ("application", "NVLink access without permission: mostly a fault of the program on a peer"),
    140: ("memory", "unrecovered ECC error"),
    141: ("application", "error of the fast path of CUDA"),
    143: ("reset", "initialisation of the GPU failed"),
    144: ("nvlink5", "NVLink 5: SAW error"),
    145: ("nvlink5", "NVLink 5: RLW error"),
    146: ("nvlink5", "NVLink 5: TLW error"),
    147: ("nvlink5", "NVLink 5: TREX error"),
    148: ("nvlink5", "NVLink 5: NVLPW_CTRL error"),
    149: ("nvlink5", "NVLink 5: NETIR error (link event, bit error rate)"),
    150: ("nvlink5", "NVLink 5: MSE error"),
    151: ("reset", "key rotation failed (confidential computing)"),
    154: ("recovery", "the recovery action that the GPU needs has changed"),
    155: ("nvlink", "NVLink: error defined by software"),
    156: ("reset", "a resource was retired; a reset brings it into effect"),
    157: ("hardware", "a resource could not be retired"),
    158: ("reset", "fatal time-out of the GPU"),
    160: ("wear", "a memory channel was retired"),
    161: ("hardware", "a memory channel could not be retired"),
    162: ("ignore", "power smoothing came back"),
    163: ("wear", "power smoothing was switched off"),
    164: ("wear", "power smoothing: little of its lifetime is left"),
    165: ("hardware", "power smoothing: its lifetime is used up"),
    167: ("hardware", "fatal time-out of PCIe"),
    168: ("hardware", "memory capacity is reduced: errors in the protected region"),
    169: ("reset", "internal micro-controller halt"),
    171: ("memory", "uncorrectable error in DRAM"),
    172: ("memory", "uncorrectable error in SRAM"),
    **dict.fromkeys(_COPY_ENGINES, ("application", "copy engine exception")),
    **dict.fromkeys(_VIDEO_ENGINES, ("application", "video, JPEG or optical-flow engine exception")),
}

BENIGN_SXIDS = frozenset(
    (11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065, 19068, 19071,
     22013, 24001, 24002, 24003)
)  # fmt: skip
"""Non-fatal errors of an NVSwitch that large clusters saw without harm (allow-list of Imbue's cluster-health)."""


def meaning(code: int) -> tuple[XidClass, str]:
    """Class and words of a code; a code that is not known is of the class ``unknown``."""
    return MEANINGS.get(code, ("unknown", "not in our table: see NVIDIA's catalogue of Xids"))
