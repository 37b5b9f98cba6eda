"""The cluster team: software, configuration, restarts. It can look itself; it needs what is gone by then."""

from wholestack.health.owners.owner import About, Item, TableOwner, Wants

_ALWAYS: tuple[Item, ...] = ("evidence", "log_lines", "history", "remedy")
_GPU = Wants(items=(*_ALWAYS, "slot", "serial", "driver", "kernel", "counters", "counters_before"))

OWNERS = (
    TableOwner(
        about=About(
            name="cluster team",
            acts_for="cluster team",
            says="software, configuration, restarts",
            source="docs/health-checks.md (remedies)",
        ),
        rows={
            "gpu": _GPU,
            "nvlink": _GPU,
            "driver": Wants(items=(*_ALWAYS, "driver", "kernel")),
            "hca": Wants(items=(*_ALWAYS, "slot", "serial", "firmware", "kernel")),
            "drive": Wants(items=(*_ALWAYS, "slot", "serial", "model", "firmware", "kernel")),
            "probe": Wants(items=_ALWAYS),
        },
        otherwise=Wants(items=(*_ALWAYS, "kernel")),
    ),
)
