"""What the tests of the simulator share: the commands of a sweep, a fleet of one host, what a host says."""

from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS, kind_named
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.remote import FleetRemote
from wholestack.remote.batch import Command, Reply

SHELLS = {
    "moment": 'echo "now=$(date +%s)"; echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"; echo "uid=$(id -u)"',
    "nvidia_smi": "nvidia-smi -q -x",
    "nvlink_status": "nvidia-smi nvlink -s",
    "nvlink_errors": "nvidia-smi nvlink -e",
    "kernel_log": "(dmesg -x --time-format iso || dmesg -T || dmesg) | tail -c 1500000",
    "pci": "lspci -Dnn",
    "pci_links": "cd /sys/bus/pci/devices && grep -s . */vendor */class */current_link_speed */numa_node",
    "driver_version": "cat /proc/driver/nvidia/version",
    "modules": "cat /proc/modules",
    "fabric_manager": "systemctl show nvidia-fabricmanager -p LoadState -p ActiveState -p SubState -p Result",
    "fabric_manager_log": "tail -c 300000 /var/log/fabricmanager.log",
    "infiniband": "cd /sys/class/infiniband && grep -s . */fw_ver */ports/*/state */ports/*/counters/*",
    "infiniband_pci": "ls -l /sys/class/infiniband",
    "ethernet": "cd /sys/class/net && grep -s . */operstate */speed */statistics/rx_errors",
    "optics": 'for n in /sys/class/net/*; do [ -e "$n/device" ] && ethtool -m "${n##*/}"; done 2>&1',
    "smart": 'for d in $(smartctl --scan | cut -d" " -f1); do smartctl -j -a "$d"; done',
    "df": "df -lPk",
    "df_inodes": "df -lPi",
    "mounts": "cat /proc/mounts",
    "fstab": "cat /etc/fstab",
    "nfs": 'for m in $(awk \'$3 ~ /^nfs/ {print $2}\' /proc/mounts); do timeout 3 stat -f "$m"; echo "$? $m"; done',
    "zpool": "zpool status",
    "mdstat": "cat /proc/mdstat",
    "edac": "cd /sys/devices/system/edac/mc && grep -s . mc*/mc_name mc*/ce_count mc*/dimm*/dimm_ce_count",
    "meminfo": "cat /proc/meminfo",
    "dmi_memory": "dmidecode -t memory",
    "dmi_system": "dmidecode -t system -t bios",
    "lscpu": "lscpu",
    "cpu_throttle": "cd /sys/devices/system/cpu && grep -s . cpu*/thermal_throttle/core_throttle_count",
    "governor": "cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | sort | uniq -c",
    "numa": "cd /sys/devices/system/node && grep -s . node*/cpulist node*/meminfo",
    "kernel_parameters": "grep -s . /proc/sys/kernel/numa_balancing /proc/cmdline /proc/sys/kernel/tainted",
    "time_sync": "chronyc -n tracking || timedatectl timesync-status || ntpq -pn",
    "docker": "docker info --format '{{json .}}'",
    "containerd": "ctr version",
    "container_gpu": 'docker run --rm --network none --gpus all --entrypoint nvidia-smi "$CONTAINER_IMAGE" -L',
    "systemd": "systemctl --failed --plain --no-pager",
    "machine_id": "cat /etc/machine-id",
    "os_release": "cat /etc/os-release",
    "swap": "cat /proc/swaps",
    "processes": "ps -eo pid,ppid,stat,etimes,user:32,comm",
    "sel": "ipmitool sel elist",
    "sel_time": "ipmitool sel time get",
    "sensors": "ipmitool sdr elist",
}
"""Shell texts of the kind that a sweep sends, by the name of the tool that has to answer."""
ROOT = {"optics", "smart", "dmi_memory", "dmi_system", "sel", "sel_time", "sensors"}
COMMANDS = tuple(Command(name=name, shell=shell, needs_root=name in ROOT) for name, shell in SHELLS.items())
GPU_KINDS = [kind.name for kind in KINDS if kind.gpu]
ALL_KINDS = [kind.name for kind in KINDS]


def one_host(kind: str, *, seed: int = 1) -> Fleet:
    """A fleet of a single host of that kind."""
    found = kind_named(kind)
    if found is None:
        raise LookupError(kind)
    return Fleet(1, seed=seed, kinds=[found])


def only(fleet: Fleet) -> Machine:
    """Its host."""
    return next(iter(fleet))


def ask(fleet: Fleet, name: str = "node0000") -> Reply:
    """What a host of the fleet answers to all commands."""
    host = next(host for host in fleet.hosts() if host.name == name)
    return FleetRemote(fleet).reply(host, COMMANDS, deadline_s=100)


def said(fleet: Fleet, tool: str) -> str:
    """What the first host prints as answer to one tool."""
    return ask(fleet).outputs[tool].text
