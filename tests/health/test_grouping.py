"""Many findings are read as few groups."""

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df
from wholestack.finding import finding
from wholestack.health.grouping import describe_sweep, grouped
from wholestack.remote.batch import Output

FULL = {"df": Output(name="df", stdout=df(99))}
HUNG = {"df": Output(name="df", exit_status=None, ending="hung")}
NAMES = [f"gpu{n:03d}" for n in range(20)]


def found(subject, status, cause):
    return finding(subject, "c", status, evidence=("line",), cause=cause, owner="vendor", remedy="do")


def test_worst_first_and_the_odd_ones_out_before_what_all_have():
    findings = [
        *(found(name, "fail", "common") for name in NAMES),
        found("gpu001", "fail", "rare"),
        *(found(name, "unknown", "root") for name in NAMES[:3]),
        found("gpu002", "warn", "warm"),
    ]
    groups = grouped(findings)
    assert [(group.status, group.cause, len(group.hosts)) for group in groups] == [
        ("fail", "rare", 1), ("fail", "common", 20), ("unknown", "root", 3), ("warn", "warm", 1)]  # fmt: skip


@pytest.fixture
def swept(tmp_path):
    told = {name: FULL for name in NAMES[:5]} | {"gpu009": HUNG, "gpu011": "auth"}
    return fleets.run(tmp_path / "s", NAMES, Answers(told))


def test_the_text_has_counts_folded_hosts_evidence_owner_and_remedy_in_80_columns(swept):
    text = describe_sweep(swept.verdicts, swept.summary)
    assert text.startswith("20 hosts: 13 may train, 5 may not, 2 unknown")
    for words in ("gpu[000-004]", "/dev/sda1 100 99", "cluster team: ", "and 3 more", "gpu009", "auth: simulated"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80
    assert "may train: gpu[005-008,010,012-019]" in describe_sweep(swept.verdicts, swept.summary, everything=True)
