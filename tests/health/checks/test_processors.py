"""CPUs and NUMA nodes."""

import pytest

from tests.health.looking import before, look, moment, recorded, said
from wholestack.health.check import Counter, Expectation
from wholestack.health.checks.processors import CHECKS
from wholestack.remote.batch import Output

COUNT, THROTTLE, GOVERNOR, NUMA = CHECKS
LSCPU, NODES = recorded("cpu", "lscpu.txt"), recorded("cpu", "numa.txt")


def test_number_sockets_threads_and_model_are_compared():
    found = look([COUNT], lscpu=LSCPU)
    assert found.passed == ("cpu.count",)
    assert {trait.name: trait.value for trait in found.traits} == {
        "cpu.count": 224,
        "cpu.sockets": 2,
        "cpu.threads_per_core": 2,
        "cpu.model": "Intel(R) Xeon(R) Platinum 8480+",
    }


def test_cpus_off_line_are_a_warning_unless_hyper_threading_was_turned_off_that_way():
    some = LSCPU.replace("0-223", "0-219\nOff-line CPU(s) list:               220-223")
    assert said(look([COUNT], lscpu=some)) == [("warn", "cpu.offline", "cpu")]
    half = LSCPU.replace("0-223", "0-111\nOff-line CPU(s) list:               112-223")
    assert said(look([COUNT], lscpu=half.replace("core:                 2", "core:                 1"))) == []


def test_hyper_threading_turned_off_is_not_told_as_missing_cpus():
    profile = Expectation(traits={trait.name: trait.value for trait in look([COUNT], lscpu=LSCPU).traits})
    half = LSCPU.replace("224\n", "112\n", 1)
    off = half.replace("0-223", "0-111").replace("core:                 2", "core:                 1")
    assert said(look([COUNT], lscpu=off, profile=profile)) == [("warn", "cpu.threads_differ", "cpu")]
    gone = half.replace("Socket(s):                          2", "Socket(s):   1")
    assert said(look([COUNT], lscpu=gone, profile=profile)) == [("fail", "cpu.count", "cpu")]


def test_half_of_the_cpus_off_line_with_hyper_threading_on_is_a_socket():
    half = LSCPU.replace("0-223", "0-111\nOff-line CPU(s) list:               112-223")
    assert said(look([COUNT], lscpu=half)) == [("warn", "cpu.offline", "cpu")]


@pytest.mark.parametrize("value", ["", "many", "-"])
def test_a_number_of_cpus_that_is_none_is_unknown(value):
    assert said(look([COUNT], lscpu=LSCPU.replace("224\n", f"{value}\n", 1)))[0][0] == "unknown"


def test_throttling_is_judged_by_rate_and_not_by_total():
    text = recorded("cpu", "throttle.txt")
    quiet = before(
        Counter(name="cpu.throttles", value=89_999, part="package"),
        Counter(name="cpu.throttles", value=12, part="core"),
    )
    loud = before(
        Counter(name="cpu.throttles", value=80_000, part="package"),
        Counter(name="cpu.throttles", value=12, part="core"),
    )
    assert said(look([THROTTLE], cpu_throttle=text, before=quiet)) == []
    assert said(look([THROTTLE], cpu_throttle=text, before=loud)) == [("warn", "cpu.throttled", "cpu 0")]
    assert said(look([THROTTLE], cpu_throttle=text, moment=moment(uptime_s=3600 * 20_000))) == []
    assert said(look([THROTTLE], cpu_throttle=text.replace(":12", ":ERR")))[0][0] == "unknown"


NO_GOVERNOR = b"cat: '/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor': No such file or directory\n"


def test_governors_that_save_power_are_a_warning():
    assert look([GOVERNOR], governor="    224 performance\n").passed == ("cpu.governor",)
    assert said(look([GOVERNOR], governor="      2 powersave\n    222 performance\n")) == [
        ("warn", "cpu.governor", "cpu")
    ]
    assert look([GOVERNOR], governor=Output(name="governor", stderr=NO_GOVERNOR)).skipped
    assert said(look([GOVERNOR], governor="    224 performance\nwhat is this\n"))[0][0] == "unknown"


def test_nodes_with_cpus_should_be_equal_and_nodes_of_memory_alone_are_left_out():
    found = look([NUMA], numa=NODES)
    assert found.passed == ("numa.nodes",)
    assert found.traits[0].value == 2
    less = NODES.replace("1056932920", "924844032")
    assert said(look([NUMA], numa=less)) == [("warn", "numa.unbalanced", "memory")]
    none = NODES.replace("1056932920", "0")
    assert said(look([NUMA], numa=none)) == [("fail", "numa.no_memory", "memory")]
    assert said(look([NUMA], numa=NODES.replace("1056932920 kB", "?")))[0][0] == "unknown"
