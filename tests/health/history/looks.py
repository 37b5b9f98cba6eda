"""Looks and histories that a test writes by hand."""

from wholestack.health.history.looks import Fact, HostLook, Seat, Sight, sweep_look
from wholestack.record import digest

CHECKS = ("gpu.ecc", "gpu.board", "host.system")
HOUR = 3600.0


def sight(check="gpu.ecc", part="gpu 0000:01:00", status="fail", *, host="a", cause="broken"):
    return Sight(id=digest(host, check, part, cause), check=check, part=part, cause=cause, owner="vendor",
                 status=status, evidence=("one line",))  # fmt: skip


def seat(part, serial, model="", lot=""):
    return Seat(part=part, serial=serial, model=model, lot=lot)


def machine(serial):
    return seat("host", serial)


def fact(name, value, part=""):
    return Fact(name=name, value=value, part=part)


def host(name="a", *, facts=(), seats=(), sights=(), judged=CHECKS, kind="h100"):
    return HostLook(host=name, kind=kind, facts=tuple(facts), seats=tuple(seats), sights=tuple(sights),
                    judged=frozenset(judged))  # fmt: skip


def sweep(at, *hosts, checks=CHECKS, in_full=True):
    """A sweep that ends ``at`` hours after the epoch."""
    return sweep_look(
        hosts,
        id=digest(at, [each.host for each in hosts], checks),
        at=at * HOUR,
        folder=f"s{at}",
        checks=checks,
        in_full=in_full,
    )
