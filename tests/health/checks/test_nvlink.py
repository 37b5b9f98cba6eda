"""NVLink: what should be up is up, and errors count by their rate."""

import pytest

from tests.health.gpu_host import NOW, OURS, key, look, nvlink, nvlink_errors, outputs, smi, told
from wholestack.health.check import Before, Expectation
from wholestack.health.judging import judge
from wholestack.remote.batch import Output


def test_one_link_down_is_named_and_several_of_a_gpu_are_one_finding():
    assert told(nvlink_status=nvlink(down={(4, 3)})) == [("nvlink.inactive", f"nvlink {key(4)}/3", "fail")]
    many = {(4, link) for link in range(6)}
    assert told(nvlink_status=nvlink(down=many)) == [("nvlink.inactive", f"gpu {key(4)}", "fail")]


def test_all_links_down_are_the_hosts_and_a_dead_fabric_manager_takes_them_in():
    every = {(gpu, link) for gpu in range(8) for link in range(18)}
    assert told(nvlink_status=nvlink(down=every)) == [("nvlink.all_inactive", "host", "fail")]
    dead = "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nNRestarts=5\n"
    found = told(nvlink_status=nvlink(down=every), fabric_manager=dead)
    assert found == [("fabric_manager.down", "service nvidia-fabricmanager.service", "fail")]


def test_a_slow_link_is_a_warning():
    assert told(nvlink_status=nvlink(slow={(2, 7)})) == [("nvlink.slow", f"nvlink {key(2)}/7", "warn")]


def test_a_pcie_card_with_12_of_18_links_is_as_designed_and_one_with_11_is_not():
    def card(count):
        down = {(gpu, link) for gpu in range(8) for link in range(12, 18)}
        down |= {(3, link) for link in range(count, 12)}
        return nvlink(down=down).replace("NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL")

    pcie = smi({index: [("product_name", "NVIDIA H100 NVL")] for index in range(8)})
    assert told(nvlink_status=card(12), nvidia_smi=pcie) == []
    assert told(nvlink_status=card(11), nvidia_smi=pcie) == [("nvlink.inactive", f"gpu {key(3)}", "fail")]
    wanted = Expectation(traits={"nvlink.count": 18})
    assert {code for code, _, _ in told(nvlink_status=card(12), nvidia_smi=pcie, expectation=wanted)} == {
        "nvlink.inactive"
    }


def test_a_gpu_that_the_tool_leaves_out_is_named():
    assert told(nvlink_status=nvlink(without=[6])) == [("nvlink.unlisted", f"gpu {key(6)}", "warn")]


@pytest.mark.parametrize(
    "text", ["GPU 0: NVIDIA L40S (UUID: GPU-1)\n", "GPU 0: NVIDIA L40S (UUID: GPU-1)\nNVML: Not Supported\n"]
)
def test_boards_without_nvlink_are_skipped(text):
    assert "nvlink.state" in {each.check for each in look(nvlink_status=text).skipped}


def test_a_cut_line_is_not_read_as_healthy():
    assert {status for _, _, status in told(nvlink_status=nvlink()[:-12])} == {"unknown"}
    silent = Output(name="nvlink_status", stdout=b"", exit_status=0)
    assert {status for _, _, status in told(nvlink_status=silent)} == {"unknown"}


def test_errors_count_by_their_rate_since_the_last_look_also_on_a_link_that_had_none():
    first = look()
    before = Before(at=NOW - 600, boot_id="b1", counters=first.after.counters)
    burst = nvlink_errors({(1, 9): 60})
    assert told(nvlink_errors=burst) == []
    assert told(nvlink_errors=burst, before=before) == [("nvlink.errors", f"nvlink {key(1)}/9", "warn")]
    storm = nvlink_errors({(1, 9): 60_000})
    assert told(nvlink_errors=storm, before=before) == [("nvlink.error_storm", f"nvlink {key(1)}/9", "fail")]
    after = look(outputs(nvlink_errors=burst), before=before).after
    assert told(nvlink_errors=burst, before=Before(at=NOW - 600, boot_id="b1", counters=after.counters)) == [
        ("nvlink.errors", f"nvlink {key(1)}/9", "warn")
    ]


def test_a_counter_at_its_end_is_a_warning_and_one_that_is_no_number_is_unknown():
    assert told(nvlink_errors=nvlink_errors({(0, 0): 4294967295})) == [
        ("nvlink.saturated", f"nvlink {key(0)}/0", "warn")
    ]
    odd = nvlink_errors().replace("Replay Errors: 0", "Replay Errors: Unknown Error", 1)
    assert told(nvlink_errors=odd) == [("telemetry.field", f"nvlink {key(0)}/0", "unknown")]


def test_counters_kept_are_few():
    assert len([each for each in look(checks=OURS).after.counters if each.name.startswith("nvlink")]) == 8


def test_a_gpu_alone_has_nobody_to_talk_to():
    alone = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" + "".join(
        f"\t Link {link}: <inactive>\n" for link in range(18)
    )
    assert judge("nvlink.state", alone, now=0).status == "ok"
    wanted = Expectation(traits={"nvlink.count": 18})
    assert judge("nvlink.state", alone, now=0, expectation=wanted).status == "fail"


def test_boards_without_nvlink_have_no_counters_either():
    assert "nvlink.errors" in {each.check for each in look(nvlink_errors="GPU 0: NVIDIA L40S (UUID: GPU-1)\n").skipped}
