"""What the kernel of a simulated host says while it boots, and the usual noise afterwards.

The lines are of the forms that Linux 5.4 to 6.8, the NVIDIA driver and mlx5 print; some of them look bad and mean
nothing (firmware bugs, a taint, harmless AER), as on real hosts.
"""

from random import Random

from wholestack.health.simulator.machine import Machine

DAY_S = 86_400.0

Message = tuple[float, str, str]


def boot_messages(machine: Machine) -> list[Message]:
    """Uptime, level and text of the messages of one boot."""
    lines = [*early(machine), *devices(machine), *drivers(machine), *late(machine)]
    at_s, messages = 0.0, []
    for index, (level, text) in enumerate(lines):
        at_s += 0.0007 if index < 60 else 0.021 + (index % 7) * 0.013
        messages.append((at_s, level, text))
    return messages


def early(machine: Machine) -> list[tuple[str, str]]:
    """What the kernel says before it looks for devices: level and text."""
    cpu = machine.cpu
    return [
        ("notice", f"Linux version {machine.kernel} (buildd@lcy02-amd64-011) (gcc 11.4.0) #134 SMP"),
        ("info", f"Command line: {machine.parameters['/proc/cmdline']}"),
        ("info", "BIOS-provided physical RAM map:"),
        *(
            ("info", f"BIOS-e820: [mem 0x{base << 28:016x}-0x{((base + 1) << 28) - 1:016x}] usable")
            for base in range(18)
        ),
        ("info", f"DMI: {machine.vendor} {machine.product}, BIOS {machine.bios_version} {machine.bios_date}"),
        ("warn", "[Firmware Bug]: TSC_DEADLINE disabled due to Errata; please update microcode to version: 0x2b000603"),
        ("info", f"smpboot: CPU0: {cpu.model} (family: 0x{cpu.family:x}, model: 0x{cpu.model_number:x})"),
        ("info", f"smp: Brought up {cpu.nodes} nodes, {cpu.count} CPUs"),
        ("info", "ACPI: Core revision 20210730"),
        ("warn", "ACPI BIOS Warning (bug): Optional FADT field Pm2ControlBlock has valid Length but zero Address"),
        ("info", "DMAR: IOMMU enabled" if cpu.vendor == "GenuineIntel" else "AMD-Vi: Interrupt remapping enabled"),
        ("info", "rcu: Hierarchical RCU implementation."),
        ("info", "mce: CPU0: Thermal monitoring enabled (TM1)"),
        ("info", "x86/fpu: Supporting XSAVE feature 0x001: 'x87 floating point registers'"),
        *(
            ("info", f"NUMA: Node {node} [mem 0x{node << 39:x}-0x{((node + 1) << 39) - 1:x}]")
            for node in range(cpu.nodes)
        ),
        *(("info", f"pci_bus 0000:{bus:02x}: root bus resource [mem 0x{bus << 24:x}]") for bus in range(0, 240, 6)),
    ]


def devices(machine: Machine) -> list[tuple[str, str]]:
    """What it finds: level and text."""
    lines = [
        ("info", f"pci {gpu.pci}: [10de:{gpu.model.device_id:04x}] type 00 class 0x030200")
        for gpu in machine.gpus
        if gpu.enumerated
    ]
    for drive in machine.drives:
        if drive.protocol == "NVMe":
            lines.append(("info", f"nvme {drive.device[5:]}: pci function {drive.pci}"))
            lines.append(("info", f"nvme {drive.device[5:]}: 32/0/0 default/read/poll queues"))
        else:
            lines.append(("info", "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"))
            lines.append(("notice", f"sd 0:0:0:0: [{drive.device[5:]}] Attached SCSI disk"))
    lines += [
        ("info", f"EDAC MC{mc}: Giving out device to module edac controller")
        for mc in sorted({dimm.controller for dimm in machine.dimms})
    ]
    lines += [
        ("info", "ipmi_si IPI0001:00: IPMI message handler: Found new BMC (man_id: 0x0002a2, prod_id: 0x0100)"),
        ("info", "usb 1-1: new high-speed USB device number 2 using xhci_hcd"),
        ("warn", "usb 1-1.4: device descriptor read/64, error -71"),
        ("info", "input: American Megatrends Inc. Virtual Keyboard and Mouse as /devices/pci0000:00"),
    ]
    return lines


def drivers(machine: Machine) -> list[tuple[str, str]]:
    """What drivers of adapters and accelerators say: level and text."""
    lines = []
    speeds = {5: "504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
              4: "252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)",
              3: "126.016 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x16 link)"}  # fmt: skip
    for hca in machine.hcas:
        lines += [
            ("info", f"mlx5_core {hca.pci}: firmware version: {hca.firmware}"),
            ("info", f"mlx5_core {hca.pci}: {speeds[hca.pcie_gen]}"),
            ("info", f"mlx5_core {hca.pci}: Port module event: module 0, Cable plugged"),
            ("info", f"mlx5_core {hca.pci}: MLX5E: StrdRq(1) RqSz(8) StrdSz(2048) RxCqeCmprss(0 enhanced)"),
        ]
    if not machine.driver:
        return lines
    flavour = "Open Kernel Module for x86_64" if machine.open_module else "x86_64 Kernel Module"
    lines += [
        ("warn", "nvidia: loading out-of-tree module taints kernel."),
        ("warn", "nvidia: module license 'NVIDIA' taints kernel."),
        ("warn", "Disabling lock debugging due to kernel taint"),
        ("info", "nvidia-nvlink: Nvlink Core is being initialized, major device number 511"),
        ("warn", f"NVRM: loading NVIDIA UNIX {flavour}  {machine.driver}"),
        *(("info", f"nvidia {gpu.pci}: enabling device (0140 -> 0142)") for gpu in machine.gpus if gpu.enumerated),
        ("info", f"nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  {machine.driver}"),
        ("info", "nvidia-uvm: Loaded the UVM driver, major device number 507."),
    ]
    lines += [
        ("info", f"nvidia-nvswitch{switch.index}: open (major=510)") for switch in machine.nvswitches for _ in range(2)
    ]
    return lines


def late(machine: Machine) -> list[tuple[str, str]]:
    """What comes when user space runs: level and text."""
    lines = [("info", f"{nic.name}: link becomes ready") for nic in machine.nics if nic.operstate == "up"]
    lines += [("info", f"md/raid1:{array.name}: active with 2 out of 2 mirrors") for array in machine.arrays]
    lines += [
        ("info", "systemd[1]: systemd 249.11-0ubuntu3.12 running in system mode"),
        ("info", "systemd[1]: Mounted /boot/efi."),
        ("notice", 'audit: type=1400 audit(1.2:3): apparmor="STATUS" operation="profile_load" name="snap.lxd"'),
        ("info", "bridge: filtering via arp/ip/ip6tables is no longer available by default."),
        ("info", "IPv6: ADDRCONF(NETDEV_CHANGE): eno1: link becomes ready"),
    ]
    return lines


def noise(machine: Machine, rng: Random) -> tuple[str, str]:
    """One harmless line of daily life, level and text."""
    pid = rng.randint(3_000, 900_000)
    veth = f"veth{rng.getrandbits(28):07x}"
    choices = [
        ("info", f"docker0: port 1({veth}) entered forwarding state"),
        ("info", f"eth0: renamed from {veth}"),
        ("info", f"IPv6: ADDRCONF(NETDEV_CHANGE): {veth}: link becomes ready"),
        ("info", f"perf: interrupt took too long ({rng.randint(2_501, 9_000)} > 2500), lowering kernel.perf_event_max"),
        ("notice", f"audit: type=1400 audit(0:{pid}): apparmor=\"ALLOWED\" operation=\"open\" pid={pid}"),
        ("warn", f"workqueue: inode_switch_wbs_work_fn hogged CPU for >10000us {rng.randint(4, 64)} times, consider "
         "switching to WQ_UNBOUND"),
        ("info", f"TCP: Possible SYN flooding on port {rng.randint(8_000, 60_000)}. Sending cookies."),
        ("info", f"python3[{pid}]: segfault at {rng.getrandbits(40):x} ip {rng.getrandbits(44):x} error 4 in "
         "libtorch_cpu.so"),
        ("info", f"process 'sshd' launched '/bin/bash' with NULL argv: empty string added (pid {pid})"),
        ("notice", f"audit: type=1112 audit(0:{pid}): pid={pid} uid=0 msg='op=login acct=\"root\" "
         "exe=\"/usr/sbin/sshd\" res=failed'"),
        ("info", "hrtimer: interrupt took 21043 ns"),
    ]  # fmt: skip
    if machine.nvswitches:
        choices.append(("info", f"nvidia-nvswitch{rng.randrange(len(machine.nvswitches))}: open (major=510)"))
    return rng.choice(choices)
