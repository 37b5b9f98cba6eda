"""Processes that hold a GPU although they are gone or stuck."""

import re

from tests.health.gpu_host import PS, key, smi, told

GPU = f"gpu {key(7)}"


def held(*pids, used="40000"):
    each = "".join(
        f"<process_info><pid>{pid}</pid><type>C</type><process_name>python</process_name>"
        f"<used_memory>{used} MiB</used_memory></process_info>"
        for pid in pids
    )
    return smi({7: [(r"<processes>.*?</processes>", f"<processes>{each}</processes>"), ("used", f"{used} MiB")]})


def ps(state, pid=4242):
    return PS + f"   {pid}    4000 {state}   86400 alice python\n"


def test_a_process_in_use_of_a_gpu_is_normal():
    assert told(nvidia_smi=held(4242), processes=ps("Sl")) == []


def test_a_dead_or_stuck_process_that_holds_memory_is_a_fault_with_its_line():
    for state in ("Z", "D", "Dl"):
        assert told(nvidia_smi=held(4242), processes=ps(state)) == [("gpu.stale_process", GPU, "fail")]


def test_a_process_that_waited_only_at_the_second_look_is_not_stuck():
    assert told(nvidia_smi=held(4242), processes=ps("Sl") + ps("D")) == []
    assert told(nvidia_smi=held(4242), processes=ps("D") + PS.splitlines()[0] + "\n") == []
    assert told(nvidia_smi=held(4242), processes=ps("D") + ps("D")) == [("gpu.stale_process", GPU, "fail")]


def test_memory_of_an_idle_gpu_that_no_living_process_holds_is_a_warning():
    assert told(nvidia_smi=held(4242), processes=PS) == [("gpu.orphaned_memory", GPU, "warn")]
    assert told(nvidia_smi=held()) == [("gpu.orphaned_memory", GPU, "warn")]
    assert told(nvidia_smi=held(used="500")) == []


def test_a_process_that_ended_between_the_two_outputs_is_no_fault_while_others_live():
    assert told(nvidia_smi=held(4242, 4243), processes=ps("Sl")) == []


def test_a_process_without_parent_on_an_idle_gpu_for_hours_was_left_behind():
    old = PS + "   4242       1 Sl   400000 ivan python3\n"
    assert told(nvidia_smi=held(4242), processes=old) == [("gpu.process_left_behind", GPU, "warn")]
    assert told(nvidia_smi=held(4242), processes=old.replace("400000", "20000")) == []
    assert told(nvidia_smi=held(4242), processes=old.replace("   1 Sl", "4000 Sl")) == []
    busy = held(4242).replace("<gpu_util>0 %", "<gpu_util>93 %")
    assert told(nvidia_smi=busy, processes=old) == []


def test_under_mig_the_reason_of_low_clocks_says_whether_the_gpu_is_idle():
    old = PS + "   4242       1 Sl   400000 ivan python3\n"
    untold = held(4242).replace("<gpu_util>0 %", "<gpu_util>N/A")
    idle, working = (
        re.sub(r"(_reason_gpu_idle>)[^<]*<", rf"\g<1>{state}<", untold) for state in ("Active", "Not Active")
    )
    assert told(nvidia_smi=idle, processes=old) == [("gpu.process_left_behind", GPU, "warn")]
    assert told(nvidia_smi=working, processes=old) == []


def test_a_process_without_parent_beside_a_job_was_left_behind():
    table = PS + "   4242       1 Sl   400000 ivan python3\n   4243    4000 Rl   3600 eve python3\n"
    busy = held(4242, 4243).replace("<gpu_util>0 %", "<gpu_util>93 %")
    assert told(nvidia_smi=busy, processes=table) == [("gpu.process_left_behind", GPU, "warn")]


def test_a_process_without_parent_beside_another_users_job_was_left_behind_however_young():
    table = PS + "   4242       1 Sl   600 ivan python3\n   4243    4000 Rl   300 eve python3\n"
    busy = held(4242, 4243).replace("<gpu_util>0 %", "<gpu_util>93 %")
    assert told(nvidia_smi=busy, processes=table) == [("gpu.process_left_behind", GPU, "warn")]
    assert told(nvidia_smi=busy, processes=table.replace("ivan", "eve")) == []
