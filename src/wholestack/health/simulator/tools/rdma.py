"""``/sys/class/infiniband`` (kernel documentation, ABI/stable/sysfs-class-infiniband)."""

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer, grep, no_folder

FOLDER = "/sys/class/infiniband"


def attributes(machine: Machine) -> Answer:
    """Firmware, state and counters of every adapter, grouped by file as the shell expands the patterns."""
    hcas = [hca for hca in machine.hcas if hca.enumerated]
    if not machine.hcas:
        return no_folder(FOLDER)
    values = [(f"{hca.name}/fw_ver", hca.firmware) for hca in hcas]
    values += [(f"{hca.name}/board_id", hca.board_id) for hca in hcas]
    values += [(f"{hca.name}/hca_type", hca.hca_type) for hca in hcas]
    values += [(f"{hca.name}/node_guid", hca.guid) for hca in hcas]
    values += [(f"{hca.name}/device/numa_node", str(hca.numa)) for hca in hcas]
    for name in ("state", "phys_state", "rate", "link_layer"):
        values += [(f"{hca.name}/ports/{hca.port.number}/{name}", getattr(hca.port, name)) for hca in hcas]
    for hca in hcas:
        port = f"{hca.name}/ports/{hca.port.number}/counters/"
        values += [(port + name, str(count)) for name, count in hca.port.counters.items()]
    for hca in hcas:
        port = f"{hca.name}/ports/{hca.port.number}/hw_counters/"
        values += [(port + name, str(count)) for name, count in hca.port.hw_counters.items()]
    return grep(values)


def addresses(machine: Machine) -> Answer:
    """``ls -l``: the links lead over the PCI address."""
    if not machine.hcas:
        return Answer(stderr=f"ls: cannot access '{FOLDER}': No such file or directory\n", exit_status=2)
    lines = "".join(
        f"lrwxrwxrwx 1 root root 0 Nov  1 09:{index:02d} {hca.name} -> ../../devices/pci0000:{hca.pci[5:7]}/"
        f"0000:{hca.pci[5:7]}:01.0/{hca.pci}/infiniband/{hca.name}\n"
        for index, hca in enumerate(machine.hcas)
        if hca.enumerated
    )
    return Answer(stdout=f"total 0\n{lines}")
