"""BMCs by Redfish: power of OpenStack's emulator; event logs and misbehaviour of one whose answers a test says."""

import asyncio
import time

import pytest

from tests.health.redfish_bmc import ANN, SYSTEM, certificate, emulated_bmc, fingerprint, scripted_bmc
from wholestack.health.connection import power_in, power_line
from wholestack.health.outofband import redfish
from wholestack.health.outofband.address import Credentials, address_of
from wholestack.health.outofband.asking import ask_bmcs
from wholestack.health.outofband.redfish import Redfish
from wholestack.remote.host import Host

ENTRIES = f"{SYSTEM}/LogServices/SEL/Entries"


@pytest.fixture(scope="module")
def cert(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("cert"))


@pytest.fixture
def bmc(cert):
    with scripted_bmc(cert) as running:
        yield running


def host(url):
    return Host(name="gpu007", bmc=url)


def power(url, credentials=ANN):
    """What the BMC says, as one line."""
    return power_line(asyncio.run(Redfish(address_of(host(url)), credentials).power()))


def causes(url, credentials=ANN):
    (said,) = asyncio.run(ask_bmcs([host(url)], credentials, now=time.time()))
    return said, {each.cause: each for each in said.judgement.findings if each.status != "ok"}


def entry(number, message, *, hours=1.0, **more):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - hours * 3600))
    return {"Id": str(number), "Created": at, "EntryType": "SEL", "Message": message, "Severity": "OK", **more}


def test_the_emulator_is_switched_off_and_on_and_its_certificate_verified(cert, tmp_path):
    with emulated_bmc(tmp_path, cert) as (url, (first, second)):
        assert "2 systems: name the host's in the file of hosts" in power(f"{url}?ca={cert}")
        assert "certificate is not trusted" in power(url + first)
        assert "user or password is refused" in power(f"{url}{first}?ca={cert}", Credentials(user="ann", password="x"))
        one = Redfish(address_of(host(f"{url}{first}?sha256={fingerprint(cert)}")), ANN)
        for to in ("off", "off", "on"):
            said = asyncio.run(one.set_power(to))
            assert (said.exit_status, power_in(said), power_in(asyncio.run(one.power()))) == (0, to, to)
        assert power(f"{url}{second}?insecure") == "its BMC says that the power is on"
        # It has no event log: that is not known, and not fine.
        said, found = causes(f"{url}{second}?ca={cert}")
        assert (said.power, said.judgement.status) == ("on", "unknown")
        assert any("it has no event log" in line for each in found.values() for line in each.evidence)


def test_entries_of_the_log_are_judged_as_those_of_ipmitool(bmc):
    supply = {"SensorType": "Power Supply / Converter", "SensorNumber": 99}
    fan = {"SensorType": "Fan", "SensorNumber": 48}
    bmc.log(
        # The newest first, as some BMCs have them: what was lost at first was given back.
        entry(5, "Fan 1", EntryCode="Lower Critical - going low", hours=0.1, **fan),
        entry(4, "Power Supply AC lost", EntryCode="Deassert", hours=1, SensorType="Power Supply / Converter"),
        entry(3, "Power Supply AC lost", EntryCode="Assert", hours=2, SensorType="Power Supply / Converter"),
        entry(2, "Failure detected", EntryCode="Assert", hours=3, **supply),
        entry(1, "Uncorrectable ECC", EntryCode="Assert", hours=400, SensorType="Memory"),
    )
    bmc.power = "Off"
    said, found = causes(bmc.url())
    assert said.power == "off"
    assert set(found) == {"the host is powered off", "power supply failed", "fan failed or too slow"}
    (line,) = found["power supply failed"].evidence
    assert line.startswith("2 | ")
    assert line.endswith(" | Power Supply #0x63 | Failure detected | Asserted")


def test_of_words_that_nobody_knows_the_bmc_s_own_grade_counts(bmc):
    bmc.log(
        entry(1, "PSU0001: the thing of slot 4 is out of order", EntryType="Event", Severity="Critical"),
        entry(2, "a person logged in", EntryType="Event"),
        entry(3, "the thing of slot 5 was mended", EntryType="Event", Severity="Critical", Resolved=True),
    )
    said, found = causes(bmc.url())
    assert list(found) == ["the BMC logged an event that it calls critical"]
    assert len(found.popitem()[1].evidence) == 1
    assert said.judgement.status == "warn"


def test_a_log_in_pages_is_read_to_its_end_and_a_huge_one_is_never_ok(bmc, monkeypatch):
    def page(first, following):
        members = [entry(n, "a person logged in") for n in range(first, first + 10)]
        return {"Members": members} | ({"Members@odata.nextLink": following} if following else {})

    bmc.answers[ENTRIES] = page(0, f"{ENTRIES}?$skip=10")
    bmc.answers[f"{ENTRIES}?$skip=10"] = page(10, None)
    said, found = causes(bmc.url())
    assert (said.judgement.status, found) == ("ok", {})
    bmc.answers[f"{ENTRIES}?$skip=10"] = page(10, ENTRIES)  # without end
    output = asyncio.run(Redfish(address_of(host(bmc.url())), ANN).log(("sel",)))["sel"]
    assert output.truncated
    monkeypatch.setattr(redfish, "MOST_ENTRIES", 15)
    bmc.answers[f"{ENTRIES}?$skip=10"] = page(10, None)
    said, found = causes(bmc.url())
    assert said.judgement.status == "unknown"
    assert any("cut at" in line for each in found.values() for line in each.evidence)


def test_the_power_is_switched_once_by_what_the_bmc_offers(bmc):
    one = Redfish(address_of(host(bmc.url())), ANN)
    for to in ("off", "off", "on"):
        assert power_in(asyncio.run(one.set_power(to))) == to
    assert bmc.resets == ["ForceOff", "On"]
    bmc.answers[SYSTEM] = {"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {
        "target": "/x", "ResetType@Redfish.AllowableValues": ["GracefulShutdown"]}}}  # fmt: skip
    assert "no way to turn its host off" in asyncio.run(one.set_power("off")).stderr.decode()
    assert one.shown("off") == (
        f"POST https://127.0.0.1:{bmc.port}/redfish/v1/Systems/{{the only one}}/Actions/ComputerSystem.Reset "
        '{"ResetType": "ForceOff"}'
    )


def test_a_bmc_that_takes_the_command_and_does_nothing_is_given_up(bmc, monkeypatch):
    monkeypatch.setattr(redfish, "SETTLE_S", 0.0)
    bmc.answers[SYSTEM] = bmc.system()  # always on
    said = asyncio.run(Redfish(address_of(host(bmc.url())), ANN).set_power("off"))
    assert (said.exit_status, "is not off after" in said.stderr.decode()) == (1, True)


@pytest.mark.parametrize("link", ["https://evil.example/redfish/v1/x", "//evil/redfish/v1/x", "/etc/passwd", 7, None,
                                  "/redfish/v1/a b\r\nX: y", "/redfish/v1/" + "a" * 5000])  # fmt: skip
def test_a_link_that_leads_elsewhere_is_not_followed(bmc, link):
    bmc.answers["/redfish/v1/Systems"] = {"Members": [{"@odata.id": link}]}
    assert "gives no usable link to its system" in power(bmc.url())
    assert bmc.asked == ["/redfish/v1/Systems"]


def test_a_redirect_is_not_followed_and_the_password_goes_nowhere_else(bmc, cert):
    with scripted_bmc(cert) as other:
        elsewhere = f"https://127.0.0.1:{other.port}{SYSTEM}"
        bmc.answers[SYSTEM] = lambda handler: handler.give(302, b"", Location=elsewhere)
        assert "302, a redirect" in power(bmc.url())
        assert other.asked == []


def test_nothing_is_sent_to_one_with_another_certificate(bmc, tmp_path):
    assert "another than that of the fingerprint" in power(bmc.url(f"?sha256={'ab' * 32}"))
    (line,) = causes(f"redfish://127.0.0.1:{bmc.port}")[1]["the BMC could not be asked"].evidence
    assert "its certificate is not trusted: self" in line
    assert "?ca=FILE" in line
    assert "no certificates" in power(bmc.url(f"?ca={tmp_path / 'none'}"))
    assert bmc.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>hello</html>", "answers no JSON"),
        (b"[" * 100_000, "answers no JSON"),
        (b"[1, 2]", "answers no JSON object"),
        (b"{}", "without members"),
        ({"Members": [7]}, "without members"),
        ({"Members": []}, "0 systems"),
        (b" " * ((4 << 20) + 10), "answers more than 4 MiB"),
    ],
)
def test_garbage_is_one_line(bmc, answer, words):
    bmc.answers["/redfish/v1/Systems"] = answer
    line = power(bmc.url())
    assert words in line
    assert len(line) < 600
    assert ANN.password not in line


@pytest.mark.parametrize("state", ["Melted", None, 7, "\x1b[2J", {"a": 1}])
def test_a_power_state_that_is_none_is_not_known(bmc, state):
    bmc.power = state
    said, found = causes(bmc.url())
    assert (said.power, said.judgement.status) == ("", "unknown")
    assert "\x1b" not in found["the BMC could not be asked"].evidence[0]


def test_entries_of_another_form_are_not_ok(bmc):
    for members in ([{"a": 1}], [{"@odata.id": f"{ENTRIES}/1"}], "none"):
        bmc.answers[ENTRIES] = {"Members": members}
        assert causes(bmc.url())[0].judgement.status == "unknown"


def drip(begin, ends):
    """Byte by byte for ten seconds; says so if it was let come to its end."""

    def answer(handler):
        handler.wfile.write(begin)
        for _ in range(200):
            handler.wfile.write(b"x")
            time.sleep(0.05)
        ends.append(begin)

    return answer


@pytest.mark.parametrize(
    "begin",
    [b"", b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\n\r\n{", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"],
)
def test_one_that_answers_for_ever_is_cut_off(bmc, monkeypatch, begin):
    monkeypatch.setattr(redfish, "PATIENCE_S", 2.0)
    ends: list[bytes] = []
    bmc.answers["/redfish/v1/Systems"] = drip(begin, ends)
    assert "no whole answer within 2 s" in power(bmc.url())
    assert ends == []


def test_one_that_is_not_there_or_speaks_no_tls_is_one_line(bmc):
    assert "Connection refused" in power("redfish://127.0.0.1:1")
    assert "does not resolve" in power("redfish://no.such.host.invalid")


def test_the_error_that_a_bmc_tells_is_shown(bmc):
    del bmc.answers[SYSTEM]
    assert "404 there is no such resource" in power(bmc.url())
