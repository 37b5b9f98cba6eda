"""What can be wrong between a wiring plan and what is seen."""

from wholestack.health.check import Cause

SWAPPED = Cause(
    code="cabling.swapped",
    says="two cables are swapped",
    owner="data centre",
    remedy="exchange the two plugs that the work order names, then look again",
)
RING = Cause(
    code="cabling.ring",
    says="cables are exchanged in a ring",
    owner="data centre",
    remedy="unplug the ends that the work order names, plug each where it belongs, then look again",
)
WRONG_PORT = Cause(
    code="cabling.wrong_port",
    says="cable is in another port of the right device",
    owner="data centre",
    remedy="move the plug to the planned port",
)
WRONG_DEVICE = Cause(
    code="cabling.wrong_device",
    says="cable goes to another device",
    owner="data centre",
    remedy="move the plug to the planned device and port",
)
WRONG_RAIL = Cause(
    code="cabling.wrong_rail",
    says="cable goes to another rail",
    owner="data centre",
    remedy="move the plug to the planned port: on a wrong rail collectives cross the spine",
)
DISPLACED = Cause(
    code="cabling.displaced",
    says="cable sits in the place of another",
    owner="data centre",
    remedy="move the plug to its port, then plug in the cable whose place it had",
)
SHIFTED = Cause(
    code="cabling.shifted",
    says="cables sit in each other's places",
    owner="data centre",
    remedy="unplug the ends that the work order names, plug each where it belongs, then look again",
)
EXCHANGED = Cause(
    code="cabling.exchanged",
    says="devices are exchanged, each is in the other's place or has its name",
    owner="data centre",
    remedy="exchange the names or the boxes, not the cables; then look again",
)
MISSING = Cause(
    code="cabling.missing",
    says="planned cable is missing",
    owner="data centre",
    remedy="plug the cable in at both ends; if it is, swap it",
)
DOWN = Cause(
    code="cabling.down",
    says="planned link is down",
    owner="data centre",
    remedy="see whether both ends are plugged in; reseat, then swap the cable; enable the port if it is disabled",
)
ABSENT = Cause(
    code="cabling.absent",
    says="device of the plan is not there",
    owner="data centre",
    remedy="see whether it is on and has power; if it has another name, write that or its GUID into the plan",
)
UNPLANNED = Cause(
    code="cabling.unplanned",
    says="cable that is in no plan",
    owner="network",
    remedy="write it into the plan, or take it out",
    status="warn",
)
STRANGER = Cause(
    code="cabling.stranger",
    says="device that is in no plan",
    owner="network",
    remedy="write it into the plan, or look only at the part of the fabric that the plan is of",
    status="warn",
)
REDUCED = Cause(
    code="cabling.reduced",
    says="link runs below what it should",
    owner="network",
    remedy="reseat, then swap cable and transceivers; look at the errors of both ports",
    status="warn",
)
RENAMED = Cause(
    code="cabling.renamed",
    says="another device, or another name, where the plan has one",
    owner="cluster team",
    remedy="if it is the same device, write its name or GUID as it is seen into the plan",
    status="unknown",
)
NAMES = Cause(
    code="cabling.names",
    says="name of the plan could not be matched",
    owner="cluster team",
    remedy="write it into the plan as it is seen, or give the GUID",
    status="unknown",
)
CONFLICT = Cause(
    code="cabling.conflict",
    says="outputs say two things of one port",
    owner="cluster team",
    remedy="take all outputs anew at one time; if it stays, two devices have one name",
    status="unknown",
)
NOT_SEEN = Cause(
    code="cabling.not_seen",
    says="planned cables could not be looked at",
    owner="cluster team",
    remedy="add outputs of that subnet, or LLDP of those hosts, with --seen",
    status="unknown",
)
UNREADABLE = Cause(
    code="cabling.unreadable",
    says="output could not be read",
    owner="cluster team",
    remedy="take it anew and whole",
    status="unknown",
)
CAUSES = (
    SWAPPED, RING, WRONG_PORT, WRONG_DEVICE, WRONG_RAIL, DISPLACED, SHIFTED, EXCHANGED, MISSING, DOWN, ABSENT,
    UNPLANNED, STRANGER, REDUCED, RENAMED, NAMES, CONFLICT, NOT_SEEN, UNREADABLE,
)  # fmt: skip
PLAN = "cabling.plan"
"""Name of the check where all is as planned; each other Finding carries the code of its cause."""
CHECKS = {PLAN: "whether every planned cable is where it should be"}
