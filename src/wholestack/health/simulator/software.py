"""Operating systems, kernel parameters and modules of simulated hosts (``/etc/os-release``, ``/proc``)."""

from wholestack.health.simulator.machine import Machine

UBUNTU_22 = {
    "PRETTY_NAME": '"Ubuntu 22.04.5 LTS"',
    "NAME": '"Ubuntu"',
    "VERSION_ID": '"22.04"',
    "VERSION": '"22.04.5 LTS (Jammy Jellyfish)"',
    "VERSION_CODENAME": "jammy",
    "ID": "ubuntu",
    "ID_LIKE": "debian",
}
UBUNTU_20 = {
    "NAME": '"Ubuntu"',
    "VERSION": '"20.04.6 LTS (Focal Fossa)"',
    "ID": "ubuntu",
    "ID_LIKE": "debian",
    "PRETTY_NAME": '"Ubuntu 20.04.6 LTS"',
    "VERSION_ID": '"20.04"',
    "VERSION_CODENAME": "focal",
}
ROCKY_9 = {
    "NAME": '"Rocky Linux"',
    "VERSION": '"9.4 (Blue Onyx)"',
    "ID": '"rocky"',
    "ID_LIKE": '"rhel centos fedora"',
    "VERSION_ID": '"9.4"',
    "PLATFORM_ID": '"platform:el9"',
    "PRETTY_NAME": '"Rocky Linux 9.4 (Blue Onyx)"',
}
DEBIAN_12 = {
    "PRETTY_NAME": '"Debian GNU/Linux 12 (bookworm)"',
    "NAME": '"Debian GNU/Linux"',
    "VERSION_ID": '"12"',
    "VERSION": '"12 (bookworm)"',
    "VERSION_CODENAME": "bookworm",
    "ID": "debian",
}


def kernel_parameters(machine: Machine) -> dict[str, str]:
    """What the files hold whose settings matter to training."""
    gpu = bool(machine.gpus)
    command_line = (
        f"BOOT_IMAGE=/boot/vmlinuz-{machine.kernel} root=UUID={machine.system_uuid} ro "
        + ("iommu=pt numa_balancing=disable " if gpu else "")
        + "console=tty0 console=ttyS0,115200n8 crashkernel=512M"
    )
    return {
        "/proc/sys/kernel/numa_balancing": "0" if gpu else "1",
        "/proc/sys/vm/zone_reclaim_mode": "0",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "/proc/sys/vm/overcommit_memory": "0",
        "/proc/sys/kernel/panic": "10",
        "/proc/cmdline": command_line,
        "/proc/sys/kernel/tainted": ("4096" if machine.open_module else "12289") if gpu else "0",
    }


def module_names(machine: Machine) -> list[str]:
    """Loaded modules, the latest first, as ``/proc/modules`` has them."""
    names = ["xt_conntrack", "nf_conntrack", "overlay", "br_netfilter", "bridge", "ipmi_ssif", "ipmi_si", 
             "ipmi_devintf", "ipmi_msghandler", "acpi_ipmi"]  # fmt: skip
    if machine.driver:
        names = ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia", *names]
        if machine.hcas:
            names.insert(0, "nvidia_peermem")
    if machine.hcas:
        names += ["rdma_ucm", "rdma_cm", "iw_cm", "ib_ipoib", "ib_cm", "ib_umad", "mlx5_ib", "ib_uverbs", "ib_core"]
        names += ["mlx5_core", "mlxfw", "tls", "psample"]
    if machine.pools is not None:
        names += ["zfs", "spl"]
    if machine.arrays:
        names += ["raid1"]
    edac = "amd64_edac" if machine.cpu.vendor == "AuthenticAMD" else "i10nm_edac"
    return [*names, edac, "nfsv4", "nfs", "lockd", "sunrpc", "nvme", "nvme_core", "xfs", "ext4", "binfmt_misc"]
