"""What else the kernel log tells; harmless look-alikes are no faults."""

import pytest

from tests.health.gpu_host import LOG, line, outputs, told

HOST = "host "


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["Out of memory: Killed process 123 (python) total-vm:1kB"], [("kernel.oom", "host", "warn")]),
        (
            [
                "Memory cgroup out of memory: Killed process 9 (python)",
                "oom_reaper: reaped process 9 (python), now anon-rss:0kB",
            ],
            [("kernel.oom", "host", "warn")],
        ),
        (
            ["mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400 uncorrected"],
            [("kernel.machine_check", "cpu 12", "fail")],
        ),
        (["{1}[Hardware Error]: event severity: fatal"], [("kernel.machine_check", "host", "fail")]),
        (
            ["mlx5_core 0000:1a:00.0: Port module event[error]: module 0, Cable error, High Temperature"],
            [("kernel.port_module", "cable 0000:1a:00", "warn")],
        ),
        (["mlx5_core 0000:1a:00.0: Port module event: module 0, Cable plugged"], []),
        (
            ["mce: [Hardware Error]: Machine check events logged"] * 3,
            [("kernel.machine_check_corrected", "host", "warn")],
        ),
        (["{2}[Hardware Error]: event severity: corrected"] * 3, [("kernel.machine_check_corrected", "host", "warn")]),
        (
            ["blk_update_request: I/O error, dev nvme3n1, sector 123 op 0x0:(READ)"],
            [("kernel.io_error", "drive /dev/nvme3", "fail")],
        ),
        (
            ["Buffer I/O error on dev sda1, logical block 0, async page read"],
            [("kernel.io_error", "drive /dev/sda", "fail")],
        ),
        (
            ["nvme nvme2: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"],
            [("kernel.io_error", "drive /dev/nvme2", "fail")],
        ),
        (["nvme nvme2: I/O 23 QID 5 timeout, aborting"] * 3, [("kernel.nvme", "drive /dev/nvme2", "warn")]),
        (
            ["nvme nvme2: I/O tag 3 (2003) QID 5 timeout, aborting req_op:READ(0) size:4096"] * 3,
            [("kernel.nvme", "drive /dev/nvme2", "warn")],
        ),
        (
            ["ata3.00: exception Emask 0x10 SAct 0x0 SErr 0x4050000 action 0xe frozen"],
            [("kernel.ata", "drive ata3", "warn")],
        ),
        (
            [
                "EXT4-fs error (device sda1): ext4_journal_check_start:83",
                "EXT4-fs (sda1): Remounting filesystem read-only",
            ],
            [("kernel.readonly", "mount /dev/sda1", "fail")],
        ),
        (
            ["EXT4-fs error (device sda1): ext4_find_entry:1682: inode #2: comm ls: reading directory lblock 0"],
            [("kernel.file_system", "mount /dev/sda1", "warn")],
        ),
        (
            [
                "I/O error, dev sda, sector 7 op 0x1:(WRITE) flags 0x3800 phys_seg 1 prio class 2",
                "EXT4-fs error (device sda1): ext4_journal_check_start:83",
                "EXT4-fs (sda1): Remounting filesystem read-only",
            ],
            [("kernel.io_error", "drive /dev/sda", "fail")],
        ),
        (
            ["critical medium error, dev nvme1n1, sector 81 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2"],
            [("kernel.io_error", "drive /dev/nvme1", "fail")],
        ),
        (
            ["print_req_error: critical target error, dev sdb, sector 81"],
            [("kernel.io_error", "drive /dev/sdb", "fail")],
        ),
        (["timeout error, dev sdb, sector 81 op 0x0:(READ)"], [("kernel.io_error", "drive /dev/sdb", "fail")]),
        (["protection error, dev sdb, sector 81 op 0x0:(READ)"], [("kernel.io_error", "drive /dev/sdb", "fail")]),
        (
            ["nvme1n1: I/O Cmd(0x2) @ LBA 935006888, 8 blocks, I/O Error (sct 0x2 / sc 0x81) MORE"],
            [("kernel.io_error", "drive /dev/nvme1", "fail")],
        ),
        (
            ["nvme1c0n1: Read(0x2) @ LBA 9, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR"],
            [("kernel.io_error", "drive /dev/nvme1", "fail")],
        ),
        (["nvme1n1: Read(0x2) @ LBA 9, 8 blocks, Host Path Error (sct 0x3 / sc 0x70)"], []),
        (["nvme1n1: Compare(0x5) @ LBA 9, 8 blocks, Compare Failure (sct 0x2 / sc 0x85)"], []),
        (["critical target error, dev nvme1n1, sector 81 op 0x3:(DISCARD) flags 0x800 phys_seg 1"], []),
        (["operation not supported error, dev nvme1n1, sector 81 op 0x9:(WRITE_ZEROES) flags 0x800"], []),
        (["critical space allocation error, dev dm-3, sector 81 op 0x1:(WRITE) flags 0x0 phys_seg 1"], []),
        (
            ["XFS (nvme1n1p2): Metadata I/O Error (0x1) detected at xfs. Shutting down filesystem."],
            [("kernel.readonly", "mount /dev/nvme1n1p2", "fail")],
        ),
        (["nfs: server storage01 not responding, still trying"], [("kernel.nfs", "host", "fail")]),
        (["nfs: server storage01 not responding, still trying", "nfs: server storage01 OK"], []),
        (["nfs: server s1 not responding, still trying", "nfs: server s2 OK"], [("kernel.nfs", "host", "fail")]),
        (["INFO: task python:1234 blocked for more than 122 seconds."], [("kernel.hung_task", "host", "warn")]),
        (["watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:99]"], [("kernel.lockup", "host", "fail")]),
        (["rcu: INFO: rcu_sched self-detected stall on CPU"], [("kernel.lockup", "host", "fail")]),
        (["NMI watchdog: Watchdog detected hard LOCKUP on cpu 5"], [("kernel.lockup", "host", "fail")]),
        (
            ["BUG: unable to handle page fault for address: ffff", "Oops: 0000 [#1] SMP NOPTI"],
            [("kernel.oops", "kernel", "fail")],
        ),
        (["Kernel panic - not syncing: Fatal exception"], [("kernel.oops", "kernel", "fail")]),
        (
            ["mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link DOWN", "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link ACTIVE"]
            * 4,
            [("kernel.link_flap", "hca_port mlx5_5/1", "warn")],
        ),
        (
            ["mlx5_core 0000:ab:00.0 ens3f0np0: Link down", "mlx5_core 0000:ab:00.0 ens3f0np0: Link up"] * 4,
            [("kernel.link_flap", "nic ens3f0np0", "warn")],
        ),
        (
            [
                "mlx5_core 0000:ab:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s "
                "PCIe x8 link at 0000:aa:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
            ],
            [("kernel.pcie_limited", "pci 0000:ab:00", "warn")],
        ),
        (
            ["pcieport 0000:97:01.0: AER: Uncorrected (Fatal) error received: 0000:98:00.0"],
            [("kernel.pcie_error", "pci 0000:98:00", "fail")],
        ),
        (
            ["mce: CPU12: Package temperature above threshold, cpu clock throttled (total events = 7)"],
            [("kernel.thermal", "cpu", "warn")],
        ),
    ],
)
def test_each_event_is_named_with_its_part_in_its_time_and_heals(messages, expected):
    recent = LOG + "".join(line(1, message) for message in messages)
    assert told(kernel_log=recent) == expected
    old = LOG + "".join(line(100, message) for message in messages)
    still = [each for each in expected if each[0] == "kernel.pcie_limited"]
    assert told(kernel_log=old) == still


@pytest.mark.parametrize(
    "message",
    [
        "mce: CPU supports 32 MCE banks",
        "mce: Using 22 MCE banks",
        "Write protecting the kernel read-only data: 26624k",
        "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro. Quota mode: none.",
        "mlx5_core 0000:ab:00.0: firmware version: 28.39.1002",
        "mlx5_core 0000:ab:00.0: 252.048 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link INIT",
        "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link DOWN",
        "nvme nvme0: 64/0/0 default/read/poll queues",
        "nvme nvme0: Shutdown timeout set to 10 seconds",
        "nvme nvme2: I/O 23 QID 5 timeout, aborting",
        "traps: python[123] general protection fault ip:7f sp:7f error:0 in libc.so.6",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08",
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
        "perf: interrupt took too long (2509 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
        "blk_update_request: I/O error, dev fd0, sector 0",
        "rcu: Hierarchical RCU implementation.",
        "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "GHES: APEI firmware first mode is enabled by APEI bit and WHEA _OSC.",
        "AER: Corrected error received: 0000:98:00.0",
    ],
)
def test_harmless_lines_are_no_faults(message):
    assert told(kernel_log=LOG + line(1, message)) == []


def test_where_edac_names_a_module_the_cpu_is_not_to_blame():
    log = LOG + line(
        1, "EDAC MC4: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#1 (channel:0 slot:1 page:0x6d9)"
    )
    log += line(1, "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400 uncorrected")
    assert told(kernel_log=log) == [("kernel.machine_check", "dimm CPU_SrcID#1_MC#0_Chan#0_DIMM#1", "fail")]


def test_heat_is_no_machine_check():
    text = "mce: CPU0: Package temperature above threshold, cpu clock throttled (total events = 4530)"
    assert told(kernel_log=LOG + line(1, text) * 3) == [("kernel.thermal", "cpu", "warn")]


def test_mount_points_are_named_where_the_host_told_them():
    mounts = "/dev/sdb1 /data ext4 ro 0 0\nstorage01:/home /home nfs4 rw 0 0\n"
    log = LOG + line(1, "EXT4-fs (sdb1): Remounting filesystem read-only")
    assert told(outputs(mounts=mounts, kernel_log=log)) == [("kernel.readonly", "mount /data", "fail")]
    log = LOG + line(1, "nfs: server storage01 not responding, timed out")
    assert told(outputs(mounts=mounts, kernel_log=log)) == [("kernel.nfs", "mount /home", "fail")]


@pytest.mark.parametrize(
    ("mounts", "part"),
    [
        ("/dev/mapper/vg0-root / ext4 ro 0 0\n/dev/sda1 /boot ext4 rw 0 0\n", "mount /"),
        ("/dev/mapper/vg0-root / ext4 ro 0 0\n/dev/mapper/vg0-home /home ext4 rw 0 0\n", "mount /dev/dm-0"),
    ],
)
def test_a_mapped_device_is_the_only_one_mounted_or_stays_a_device(mounts, part):
    lines = LOG + line(1, "EXT4-fs (dm-0): Remounting filesystem read-only")
    assert ("kernel.readonly", part, "fail") in told(kernel_log=lines, mounts=mounts)
