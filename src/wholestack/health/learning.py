"""Learn a profile from the good hosts of a sweep."""

from collections.abc import Sequence
from pathlib import Path

from wholestack.errors import InputError
from wholestack.health.names import fold
from wholestack.health.profile import learn
from wholestack.health.records import RESULTS
from wholestack.health.result import HostResult
from wholestack.health.verdicts import read_sweep
from wholestack.runs import RunReader


def learn_from(folder: Path, hosts: Sequence[str] = ()) -> str:
    """A profile, as text.

    Args:
        folder: Run directory of a concluded sweep.
        hosts: Names of the hosts called good; empty for every host that may train.

    Raises:
        InputError: a named host is not in the sweep, did not answer or fails a check; no host may train; or the
            hosts disagree.
    """
    sweep = read_sweep(folder)
    statuses = {verdict.host: verdict.status for verdict in sweep.verdicts}
    missing = sorted(set(hosts) - set(statuses))
    if missing:
        raise InputError(f"{folder}: {fold(missing)} is not in the sweep", remedy="name hosts as the sweep names them")
    unfit = sorted(host for host in hosts if statuses[host] == "fail")
    if unfit:
        remedy = "leave it out, or mend it and sweep again"
        raise InputError(f"{fold(unfit)} may not train, so nothing is learnt from it", remedy=remedy)
    good = set(hosts) or {host for host, status in statuses.items() if status in ("ok", "warn")}
    if not good:
        raise InputError(
            f"{folder}: no host may train ({sweep.summary.may_not} may not, {sweep.summary.unknown} unknown)",
            remedy="name those that you call good with --hosts; unknown verdicts are often lack of root (--sudo)",
        )
    return learn([each for each in RunReader(folder).journal(RESULTS, HostResult) if each.host in good])
