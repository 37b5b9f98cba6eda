"""The network: the fabric beyond the host's port."""

from wholestack.health.owners.owner import About, Item, TableOwner, Wants

_ALWAYS: tuple[Item, ...] = ("slot", "evidence", "log_lines", "counters", "counters_before", "history", "remedy")

OWNERS = (
    TableOwner(
        about=About(
            name="network",
            acts_for="network",
            says="the fabric beyond the host's port",
            source="ibdiagnet(1), perfquery(8): ports are known by their GUID",
        ),
        rows={
            "hca": Wants(items=(*_ALWAYS, "serial", "model", "firmware")),
            "hca_port": Wants(
                items=(*_ALWAYS, "serial", "model", "firmware"),
                asks=("errors of both ends of the link: perfquery -x LID PORT",),
            ),
        },
        otherwise=Wants(items=_ALWAYS),
    ),
)
