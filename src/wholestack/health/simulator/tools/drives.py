"""``smartctl -j -a`` of every drive that ``smartctl --scan`` lists, one JSON document after the other.

Keys as smartmontools 7 prints them (``smartmontools`` documentation and recorded outputs of enterprise drives); the
exit status of the loop is that of the last call, whose bits 3 to 6 speak of the drive (``smartctl(8)``).
"""

import json
import time
from typing import Any

from wholestack.health.simulator.hardware import Drive
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer


def smart(machine: Machine) -> Answer:
    """All drives."""
    drives = [drive for drive in machine.drives if drive.present]
    documents = [document(machine, drive) for drive in drives]
    if not drives:
        return Answer(stdout="smartctl --scan finds no drive\n", seconds=0.05)
    text = "".join(json.dumps(each, indent=2) + "\n" for each in documents)
    status = documents[-1]["smartctl"]["exit_status"]
    return Answer(stdout=text, exit_status=status, seconds=0.08 * len(drives))


def document(machine: Machine, drive: Drive) -> dict[str, Any]:
    """What ``smartctl -j -a`` prints of one drive."""
    exit_status = 0 if drive.passed else 8
    kind = "nvme" if drive.protocol == "NVMe" else "sat"
    body: dict[str, Any] = {
        "json_format_version": [1, 0],
        "smartctl": {
            "version": [7, 2],
            "svn_revision": "5155",
            "platform_info": f"x86_64-linux-{machine.kernel}",
            "build_info": "(local build)",
            "argv": ["smartctl", "-j", "-a", drive.device],
            "exit_status": exit_status,
        },
        "device": {"name": drive.device, "info_name": drive.device, "type": kind, "protocol": drive.protocol},
        "model_name": drive.model,
        "serial_number": drive.serial,
        "firmware_version": drive.firmware,
    }
    body |= _nvme(drive) if drive.protocol == "NVMe" else _ata(drive)
    clock = int(machine.clock)
    body |= {
        "local_time": {"time_t": clock, "asctime": time.asctime(time.gmtime(clock)) + " UTC"},
        "temperature": {"current": drive.temperature_c},
        "power_cycle_count": drive.power_cycles,
        "power_on_time": {"hours": drive.power_on_hours},
    }
    return body


def _nvme(drive: Drive) -> dict[str, Any]:
    return {
        "nvme_pci_vendor": {"id": drive.vendor_id, "subsystem_id": drive.vendor_id},
        "nvme_ieee_oui_identifier": 9528,
        "nvme_total_capacity": drive.capacity_bytes,
        "nvme_unallocated_capacity": 0,
        "nvme_controller_id": 6,
        "nvme_version": {"string": "1.4", "value": 66560},
        "nvme_number_of_namespaces": 32,
        "user_capacity": {"blocks": drive.capacity_bytes // 512, "bytes": drive.capacity_bytes},
        "logical_block_size": 512,
        "smart_support": {"available": True, "enabled": True},
        "smart_status": {"passed": drive.passed, "nvme": {"value": drive.critical_warning}},
        "nvme_smart_health_information_log": {
            "critical_warning": drive.critical_warning,
            "temperature": drive.temperature_c,
            "available_spare": drive.spare,
            "available_spare_threshold": drive.spare_threshold,
            "percentage_used": drive.used_percent,
            "data_units_read": drive.units_read,
            "data_units_written": drive.units_written,
            "host_reads": drive.units_read * 11,
            "host_writes": drive.units_written * 16,
            "controller_busy_time": drive.power_on_hours // 9,
            "power_cycles": drive.power_cycles,
            "power_on_hours": drive.power_on_hours,
            "unsafe_shutdowns": drive.unsafe_shutdowns,
            "media_errors": drive.media_errors,
            "num_err_log_entries": drive.error_entries,
            "warning_temp_time": drive.warning_temperature_minutes,
            "critical_comp_time": drive.critical_temperature_minutes,
            "temperature_sensors": [drive.temperature_c, drive.temperature_c + 9],
        },
    }


def _ata(drive: Drive) -> dict[str, Any]:
    rotating = drive.model.startswith("ST")
    return {
        "wwn": {"naa": 5, "oui": 3152 if rotating else 6083300, "id": 2_000_000_000 + len(drive.serial)},
        "user_capacity": {"blocks": drive.capacity_bytes // 512, "bytes": drive.capacity_bytes},
        "logical_block_size": 512,
        "physical_block_size": 4096,
        "rotation_rate": 7200 if rotating else 0,
        "in_smartctl_database": True,
        "smart_status": {"passed": drive.passed},
        "ata_smart_attributes": {
            "revision": 16,
            "table": [
                _attribute(5, "Reallocated_Sector_Ct", drive.reallocated, threshold=10),
                _attribute(9, "Power_On_Hours", drive.power_on_hours),
                _attribute(12, "Power_Cycle_Count", drive.power_cycles),
                _attribute(187, "Reported_Uncorrect", drive.uncorrectable),
                _attribute(194, "Temperature_Celsius", drive.temperature_c),
                _attribute(197, "Current_Pending_Sector", drive.pending),
                _attribute(198, "Offline_Uncorrectable", drive.uncorrectable),
                _attribute(199, "UDMA_CRC_Error_Count", drive.crc_errors),
                _attribute(241, "Total_LBAs_Written", drive.units_written),
            ],
        },
        "ata_smart_error_log": {"summary": {"revision": 1, "count": drive.uncorrectable}},
    }


def _attribute(number: int, name: str, raw: int, *, threshold: int = 0) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "value": 100,
        "worst": 100,
        "thresh": threshold,
        "when_failed": "",
        "flags": {"value": 50, "string": "-O--CK ", "prefailure": False, "updated_online": True},
        "raw": {"value": raw, "string": str(raw)},
    }
