"""BMCs by IPMI: a real one on loopback (OpenIPMI's simulator), asked by the real ipmitool."""

import asyncio
import os
import socket
import stat
import threading
import time
from dataclasses import replace

import pytest

from tests.health.ipmi_sim import PASSWORD, SUPPLY_1
from wholestack.errors import InputError
from wholestack.health.connection import power_in, power_line
from wholestack.health.outofband import ipmi
from wholestack.health.outofband.address import Credentials, address_of, read_credentials
from wholestack.health.outofband.asking import Bmcs, WithBmcs, ask_bmcs
from wholestack.health.outofband.ipmi import Ipmi
from wholestack.remote.batch import Command, Output
from wholestack.remote.host import Host
from wholestack.remote.simulated import SimulatedRemote

ANN = Credentials(user="ADMIN", password=PASSWORD)


@pytest.fixture
def host(controller):
    controller.set_power(on=True)
    controller.shell("ipmitool sel clear")
    return Host(name="gpu007", bmc=f"ipmi://127.0.0.1:{controller.port}?cipher=3")


def causes(host, credentials=ANN):
    (said,) = asyncio.run(ask_bmcs([host], credentials, now=time.time()))
    return said, {each.cause: each for each in said.judgement.findings if each.status != "ok"}


def test_a_host_that_is_off_and_a_supply_that_failed_are_findings_with_their_lines(controller, host):
    said, found = causes(host)
    assert said.power == "on"
    assert "the host is powered off" not in found
    assert found["fan failed or too slow"].part.startswith("fan Fan2A")
    controller.set_power(on=False)
    controller.add((0x08, SUPPLY_1, 0x6F, 0xA1))
    said, found = causes(host)
    assert (said.power, said.judgement.status) == ("off", "fail")
    assert found["the host is powered off"].evidence == ("its BMC says that the power is off",)
    failed = found["power supply failed"]
    assert (failed.check, failed.owner) == ("bmc.sel", "vendor")
    assert "Failure detected | Asserted" in failed.evidence[0]
    # A fan that stands still is no fault of a host that is off.
    assert "fan failed or too slow" not in found


def test_the_power_is_switched_once_and_what_is_so_is_left_alone(controller, host):
    before = len(controller.switched())
    bmc = Ipmi(address_of(host), ANN)
    for to in ("off", "off", "on", "on"):
        said = asyncio.run(bmc.set_power(to))
        assert (said.exit_status, power_in(asyncio.run(bmc.power()))) == (0, to)
    assert controller.switched()[before:] == ["0", "1"]


@pytest.mark.parametrize(
    ("user", "password", "words"),
    [
        ("ADMIN", "wr0ng-word", "user or password is refused"),
        ("nobody", PASSWORD, "user or password is refused"),
        ("ADMIN", "longer than twenty bytes", "longer than the 20 bytes that IPMI has room for"),
    ],
)
def test_a_refused_password_is_one_line_that_does_not_hold_it(host, user, password, words):
    said, found = causes(host, Credentials(user=user, password=password))
    assert (said.power, said.judgement.status) == ("", "unknown")
    (line,) = found["the BMC could not be asked"].evidence
    assert line.startswith(f"its BMC: ipmi://127.0.0.1:{address_of(host).port}: ")
    assert line.endswith(words)
    assert password not in line


def test_the_password_is_in_no_command_line_and_no_text(host, controller):
    seen = []

    def answer(_, command):
        seen.append(command.shell)
        return Output(name=command.name, stdout=b"Chassis Power is on\n")

    bmc = Ipmi(address_of(host), ANN, SimulatedRemote(answer))
    asyncio.run(bmc.power())
    asyncio.run(bmc.log(("sel", "sensors", "bmc_time")))
    assert len(seen) == 4
    assert PASSWORD not in repr([ANN, seen, bmc.shown("on"), Bmcs(ANN).shown(host, Command(name="a", shell="b"))])
    assert bmc.shown("off").endswith(f"-p {controller.port} -U ADMIN -E -N 2 -R 3 -C 3 chassis power off")


@pytest.mark.heavy
@pytest.mark.parametrize("answers", [None, b"\x06\x00\xff\x07" + b"\xff" * 400])
def test_a_bmc_that_does_not_answer_or_answers_garbage_is_given_up(answers):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as odd:
        odd.bind(("127.0.0.1", 0))

        def reply():
            while answers is not None:
                try:
                    packet, sender = odd.recvfrom(2000)
                    if not packet:
                        return
                    odd.sendto(answers, sender)
                except OSError:
                    return

        talking = threading.Thread(target=reply)
        talking.start()
        host = Host(name="a", bmc=f"ipmi://127.0.0.1:{odd.getsockname()[1]}?cipher=3")
        _, found = causes(host)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", odd.getsockname())
        talking.join(20)
    (line,) = found["the BMC could not be asked"].evidence
    assert "no answer to IPMI over LAN" in line or "no answer within" in line


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (Output(name="x", exit_status=None, ending="timed_out"), "no answer within 30 s"),
        (Output(name="x", exit_status=127), "ipmitool is not installed"),
        (Output(name="x", exit_status=1, stderr=b"Address lookup for b failed\nError: Unable to establish"), "resolve"),
        (Output(name="x", exit_status=1, stderr=b"a\n\x1b[2Jodd\n"), "ipmitool: "),
        (Output(name="x", stdout=b"<html>"), "known formats"),
        (Output(name="x", stdout=b"Chassis Power is melted\n"), "known formats"),
    ],
)
def test_whatever_ipmitool_does_is_one_line(host, output, words):
    bmc = Ipmi(address_of(host), ANN, SimulatedRemote(lambda _, command: replace(output, name=command.name)))
    said = asyncio.run(bmc.power())
    assert power_in(said) == ""
    assert words in power_line(said)
    assert "\n" not in power_line(said)


def test_of_a_huge_log_the_newest_entries_are_judged(controller, host, monkeypatch):
    monkeypatch.setattr(ipmi, "_ARGUMENTS", {"sel": "sel elist last 20 2>&1"})
    controller.add((0x08, SUPPLY_1, 0x6F, 0xA1), *[(0x04, 0x30, 0x01, 0x50)] * 200, (0x0C, 0x53, 0x6F, 0xA1))
    output = asyncio.run(Ipmi(address_of(host), ANN).log(("sel",)))["sel"]
    assert len(output.text.splitlines()) == 20
    assert "Uncorrectable ECC" in output.text.splitlines()[-1]


def test_a_bmc_that_cannot_switch_says_so_in_the_end(host, monkeypatch):
    """It takes the command and nothing happens."""
    monkeypatch.setattr(ipmi, "SETTLE_S", 0.0)

    def answer(_, command):
        return Output(name=command.name, stdout=b"Chassis Power is on\n")

    said = asyncio.run(Ipmi(address_of(host), ANN, SimulatedRemote(answer)).set_power("off"))
    assert (said.exit_status, "is not off after" in said.stderr.decode()) == (1, True)


def silent(trouble):
    return SimulatedRemote(lambda host, command: trouble)


SEL = Command(name="sel", shell="ipmitool sel elist 2>&1")


@pytest.mark.parametrize(
    ("trouble", "asked"),
    [
        ("unreachable", True),
        ("timed_out", True),
        ("closed", True),
        ("jump", False),
        ("refused", False),
        ("auth", False),
    ],
)
def test_only_a_silent_host_is_asked_by_its_bmc(host, trouble, asked):
    reply = asyncio.run(WithBmcs(silent(trouble), Bmcs(ANN)).run(host, [SEL], deadline_s=9.0))
    assert reply.trouble == trouble
    assert ("bmc_power" in reply.outputs) is asked
    assert (reply.outputs["sel"].ending == "ended") is asked


def test_without_credentials_or_address_nothing_is_asked(host):
    reply = asyncio.run(WithBmcs(silent("unreachable"), Bmcs(None)).run(host, [SEL], deadline_s=9.0))
    assert "was not asked, for want of a user" in power_line(reply.outputs["bmc_power"])
    bare = replace(host, bmc=None)
    reply = asyncio.run(WithBmcs(silent("unreachable"), Bmcs(ANN)).run(bare, [SEL], deadline_s=9.0))
    assert set(reply.outputs) == {"sel"}


def test_a_command_that_switches_never_goes_to_the_host(host, controller):
    def answer(_, command):
        raise AssertionError(command)

    way = WithBmcs(SimulatedRemote(answer), Bmcs(ANN))
    off = Command(name="power_cycle_1", shell="ipmitool chassis power off", needs_root=True)
    reply = asyncio.run(way.run(host, [off], deadline_s=9.0))
    assert reply.outputs["power_cycle_1"].exit_status == 0
    assert controller.switched()[-1] == "0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ipmi://user:word@b", "holds a password"),
        ("user:word@b", "holds a password"),
        ("ipmi:user:word@b", "holds a password"),
        ("ipmi://user:sl/ash-word@b", "holds a password"),
        ("ipmi://user:que?stion-word@b", "holds a password"),
        ("redfish://b?password=word", "none of its options"),
        ("redfish://b:word", "port is no number"),
        ("http://b", "begins with none of"),
        ("ipmi://", "names no host"),
        ("ipmi://-oProxy", "names no host"),
        ("ipmi://b:99999", "ort"),
        ("ipmi://b?ca=x", "none of its options"),
        ("ipmi://b/redfish/v1/Systems/1", "none of a system"),
        ("redfish://b/etc/passwd", "none of a system"),
        ("redfish://b?sha256=ab", "none of its options"),
        ("redfish://b?insecure&ca=x", "more than one option"),
    ],
)
def test_an_address_that_is_none_is_refused_by_name(text, words):
    with pytest.raises(InputError, match=words) as refused:
        address_of(Host(name="gpu001", bmc=text))
    assert "gpu001" in str(refused.value)
    assert "word" not in str(refused.value).replace("a password", "").replace("'password'", "")


def test_an_address_says_where_and_the_host_s_name_stands_in_it():
    address = address_of(Host(name="gpu001", bmc="ipmi://root@{name}-bmc:6230?cipher=3"))
    assert (str(address), address.user, address.value) == ("ipmi://gpu001-bmc:6230", "root", "3")
    found = address_of(Host(name="a", bmc="redfish://[fd00::1]/redfish/v1/Systems/1/?sha256=" + "AB:" * 31 + "ab"))
    assert (str(found), found.path, found.value) == ("redfish://[fd00::1]", "/redfish/v1/Systems/1", "ab" * 32)
    with pytest.raises(InputError, match="gpu001 has no bmc"):
        address_of(Host(name="gpu001"))


def test_a_file_of_credentials_is_for_its_owner_only(tmp_path):
    path = tmp_path / "bmc.toml"
    path.write_text('user = "root"\npassword = "s3cret"\n')
    path.chmod(0o640)
    with pytest.raises(InputError, match="others may read"):
        read_credentials(path)
    path.chmod(0o600)
    found = read_credentials(path)
    assert (found.user, found.password, "s3cret" in repr(found)) == ("root", "s3cret", False)
    for text in ('user = "root"\npassword = s3cret', 'user = "root"', 'user = "a"\npassword = 7'):
        path.write_text(text)
        with pytest.raises(InputError) as refused:
            read_credentials(path)
        assert "s3cret" not in str(refused.value)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
