"""The vendor, who replaces hardware: serial numbers, slot, firmware, and what shows that the part is broken."""

from wholestack.health.owners.owner import About, Item, TableOwner, Wants

_ALWAYS: tuple[Item, ...] = ("machine_serial", "machine_model", "evidence", "log_lines", "history", "remedy")
_PART: tuple[Item, ...] = (*_ALWAYS, "slot", "serial", "model", "firmware", "driver", "counters", "counters_before")
_BUG_REPORT = "log of the NVIDIA driver: nvidia-bug-report.sh, as root, before the machine is restarted"
_FIELD_TEST = "result of the vendor's field diagnostic, on the drained machine"
_BMC = "event log of the BMC: ipmitool sel elist"

OWNERS = (
    TableOwner(
        about=About(
            name="vendor",
            acts_for="vendor",
            says="replaces hardware",
            source="NVIDIA GPU Debug Guidelines (what to collect before an RMA); smartctl(8); ipmitool(1)",
        ),
        rows={
            "gpu": Wants(items=_PART, asks=(_BUG_REPORT, _FIELD_TEST)),
            "nvlink": Wants(items=_PART, asks=(_BUG_REPORT, "state of all links: nvidia-smi nvlink -s")),
            "nvswitch": Wants(items=(*_ALWAYS, "slot", "driver"), asks=(_BUG_REPORT,)),
            "hca": Wants(items=_PART, asks=("what the adapter says of itself: mstflint -d DEVICE query full",)),
            "drive": Wants(items=("serial", "model", "firmware", "slot", "counters", "counters_before", *_ALWAYS),
                           asks=("all that the drive says of itself: smartctl -x DEVICE",)),
            "dimm": Wants(items=(*_ALWAYS, "slot", "serial", "model", "counters", "counters_before"), asks=(_BMC,)),
        },
        otherwise=Wants(items=(*_ALWAYS, "slot", "firmware", "counters", "counters_before"), asks=(_BMC,)),
    ),
)  # fmt: skip
