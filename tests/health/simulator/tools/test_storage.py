"""File systems, pools and arrays as the tools print them."""

import pytest

from tests.health.simulator.hosts import ALL_KINDS, ask, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named


def rows(text: str):
    head, *lines = text.splitlines()
    return head.split(None, 5), [line.split(None, 5) for line in lines]


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_df_has_six_columns_and_no_file_system_over_the_network(kind: str):
    fleet = one_host(kind)
    for tool in ("df", "df_inodes"):
        head, lines = rows(said(fleet, tool))
        assert head[-1] == "Mounted on"
        assert all(len(line) == 6 for line in lines)
        assert not {"/home", "/shared"} & {line[5] for line in lines}
    _, lines = rows(said(fleet, "df"))
    assert all(int(line[4][:-1]) < 95 for line in lines)
    assert all(int(line[2]) + int(line[3]) <= int(line[1]) for line in lines)


def test_a_fat_file_system_has_no_inodes():
    _, lines = rows(said(one_host("h100-8-ndr"), "df_inodes"))
    assert next(line for line in lines if line[5] == "/boot/efi")[1:5] == ["0", "0", "0", "-"]


def test_a_hung_server_is_124_at_its_mount():
    fleet = one_host("h100-8-ndr")
    assert said(fleet, "nfs") == "0 /home\n0 /shared\n"
    fleet.inject("node0000", fault_named("nfs_hung"), index=1)
    assert said(fleet, "nfs") == "0 /home\n124 /shared\n"
    assert "not responding" in said(fleet, "kernel_log")


def test_what_is_in_fstab_is_mounted_until_it_is_not():
    fleet = one_host("a10-4")
    fleet.inject("node0000", fault_named("mount_missing"), index=0)
    assert "10.1.0.9:/home\t/home\tnfs4" in said(fleet, "fstab")
    assert " /home nfs4 " not in said(fleet, "mounts")


def test_a_pool_says_which_device_is_gone():
    fleet = one_host("h100-8-ndr")
    assert said(fleet, "zpool").count("ONLINE") == 1 + 2 + 8
    truth = fleet.inject("node0000", fault_named("pool_degraded"))
    text = said(fleet, "zpool")
    assert " state: DEGRADED" in text
    assert any(f"{truth.names[1]} " in line and "ONLINE" not in line for line in text.splitlines())


def test_a_host_without_zfs_has_no_zpool():
    assert ask(one_host("l40s-8")).outputs["zpool"].exit_status == 127


def test_md_arrays_show_their_members():
    fleet = one_host("a100-8-hdr")
    assert said(fleet, "mdstat").count("[2/2] [UU]") == 2
    fleet.inject("node0000", fault_named("array_degraded"), index=0)
    text = said(fleet, "mdstat")
    assert "[2/1]" in text
    assert text.count("(F)") == 1


def test_a_read_only_file_system_is_ro_in_mounts():
    fleet = one_host("cpu-intel")
    fleet.inject("node0000", fault_named("file_system_read_only"), index=0)
    root = next(line for line in said(fleet, "mounts").splitlines() if line.split()[1] == "/")
    assert root.split()[3].startswith("ro,")
    assert only(fleet).log.lines[-1].text.endswith("Remounting filesystem read-only")
