"""The data centre: power, cooling, cabling, reseating. It has to find the machine, then the slot or the port."""

from wholestack.health.owners.owner import About, Item, TableOwner, Wants

_ALWAYS: tuple[Item, ...] = ("place", "machine_serial", "slot", "evidence", "log_lines", "history", "remedy")
_COUNTED: tuple[Item, ...] = (*_ALWAYS, "counters", "counters_before")

OWNERS = (
    TableOwner(
        about=About(
            name="data centre",
            acts_for="data centre",
            says="power, cooling, cabling, reseating on site",
            source="ANSI/TIA-606 (racks, positions and ports have labels); docs/health-checks.md (remedies)",
        ),
        rows={
            "gpu": Wants(items=(*_COUNTED, "serial")),
            "dimm": Wants(items=(*_ALWAYS, "machine_model")),
            "drive": Wants(items=(*_COUNTED, "machine_model")),
            "hca_port": Wants(items=(*_COUNTED, "serial"), asks=("the port at the other end, from the wiring plan",)),
            "nic": Wants(items=_COUNTED, asks=("the port at the other end, from the wiring plan",)),
            "cable": Wants(items=(*_COUNTED, "serial"), asks=("the port at the other end, from the wiring plan",)),
        },
        otherwise=Wants(items=_COUNTED),
    ),
)
