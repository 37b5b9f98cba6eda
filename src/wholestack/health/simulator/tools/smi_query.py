"""``nvidia-smi -q -x``: everything that the driver says about each GPU, as XML (layouts: see ``smi_layout``)."""

import time
from functools import lru_cache

from wholestack.health.simulator.hardware import Gpu, GpuModel
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer, not_found
from wholestack.health.simulator.tools.smi_layout import DEPRECATED, Layout, layout_of
from wholestack.health.simulator.tools.smi_memory import memory_errors

REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "display_clocks_setting",
)


def smi_failure(machine: Machine) -> Answer | None:
    """What every form of ``nvidia-smi`` says where it cannot work at all.

    Texts and exit codes: manual page of ``nvidia-smi``, section RETURN VALUE (6 no such GPU, 9 driver not loaded,
    15 GPU has fallen off the bus) and issues that quote them.
    """
    if not machine.driver:
        return not_found("nvidia-smi")
    if machine.driver_answers:
        text, _, code = machine.driver_answers.rpartition("|")
        return Answer(stdout=text, exit_status=int(code), seconds=0.3)
    if not machine.seen_gpus():
        return Answer(stdout="No devices were found\n", exit_status=6, seconds=0.3)
    return None


def query(machine: Machine) -> Answer:
    """The whole document."""
    failure = smi_failure(machine)
    if failure:
        return failure
    layout, gpus = layout_of(machine.driver), machine.seen_gpus()
    local = machine.clock + machine.utc_offset_h * 3600
    head = (
        f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "{layout.dtd}">\n<nvidia_smi_log>\n'
        f"\t<timestamp>{time.asctime(time.gmtime(local))}</timestamp>\n"
        f"\t<driver_version>{machine.driver}</driver_version>\n\t<cuda_version>{machine.cuda}</cuda_version>\n"
        f"\t<attached_gpus>{len(gpus)}</attached_gpus>\n"
    )
    corrupt = [gpu for gpu in gpus if gpu.inforom_corrupt]
    tail = "".join(f"WARNING: infoROM is corrupted at gpu {gpu.pci.upper()}\n" for gpu in corrupt)
    return Answer(
        stdout=head + "".join(_gpu(machine, gpu, layout) for gpu in gpus) + "</nvidia_smi_log>\n" + tail,
        exit_status=14 if corrupt else 0,
        seconds=0.15 * len(gpus) + (0.0 if gpus[0].persistence else 0.7 * len(gpus)),
    )


def _gpu(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    text = "".join(
        (
            f'\t<gpu id="{gpu.smi_address}">\n',
            _identity(machine, gpu, layout),
            _pci(machine, gpu, layout),
            _activity(machine, gpu, layout),
            memory_errors(gpu, layout),
            _heat(machine, gpu, layout),
            _power(machine, gpu, layout),
            _clocks(machine, gpu, layout),
            _processes(gpu),
            "\t</gpu>\n\n",
        )
    )
    return _blank(text, gpu) if gpu.thin or gpu.lost_as else text


def _blank(text: str, gpu: Gpu) -> str:
    """Replace values that the driver no longer gives."""
    out = []
    for line in text.split("\n"):
        tag = line.strip()[1:].split(">", 1)[0].split(" ", 1)[0]
        value = gpu.thin.get(tag)
        if value is None and gpu.lost_as and "</" in line and tag not in _KNOWN_WITHOUT_THE_GPU and tag[0] != "/":
            value = gpu.lost_as
        if value == "":
            continue
        out.append(line if value is None else f"{line[: line.index('<')]}<{tag}>{value}</{tag}>")
    return "\n".join(out)


_KNOWN_WITHOUT_THE_GPU = frozenset(
    ("pci_bus", "pci_device", "pci_domain", "pci_bus_id", "minor_number", "accounting_mode_buffer_size")
)


def _identity(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    model = gpu.model
    mig = ("Enabled" if gpu.mig_current else "Disabled", "Enabled" if gpu.mig_pending else "Disabled")
    mig = mig if model.mig else ("N/A", "N/A")
    display = DEPRECATED if layout.recovery else "Enabled"
    reset = DEPRECATED if layout.recovery else "No"
    module = (
        f"\t\t<platformInfo>\n\t\t\t<chassis_serial_number>N/A</chassis_serial_number>\n"
        f"\t\t\t<slot_number>N/A</slot_number>\n\t\t\t<tray_index>N/A</tray_index>\n\t\t\t<host_id>N/A</host_id>\n"
        f"\t\t\t<peer_type>{'Switch Connected' if gpu.links else 'N/A'}</peer_type>\n"
        f"\t\t\t<module_id>{gpu.module_id}</module_id>\n"
        f"\t\t\t<gpu_fabric_guid>N/A</gpu_fabric_guid>\n\t\t</platformInfo>\n"
        if layout.recovery
        else f"\t\t<gpu_module_id>{gpu.module_id}</gpu_module_id>\n"
    )
    return (
        f"\t\t<product_name>{model.name}</product_name>\n\t\t<product_brand>{model.brand}</product_brand>\n"
        f"\t\t<product_architecture>{model.architecture}</product_architecture>\n"
        f"\t\t<display_mode>{display}</display_mode>\n\t\t<display_active>Disabled</display_active>\n"
        f"\t\t<persistence_mode>{'Enabled' if gpu.persistence else 'Disabled'}</persistence_mode>\n"
        f"\t\t<addressing_mode>{'HMM' if machine.open_module else 'None'}</addressing_mode>\n"
        f"\t\t<mig_mode>\n\t\t\t<current_mig>{mig[0]}</current_mig>\n\t\t\t<pending_mig>{mig[1]}</pending_mig>\n"
        f"\t\t</mig_mode>\n{_mig_devices(gpu)}"
        f"\t\t<accounting_mode>Disabled</accounting_mode>\n"
        f"\t\t<accounting_mode_buffer_size>4000</accounting_mode_buffer_size>\n"
        f"\t\t<driver_model>\n\t\t\t<current_dm>N/A</current_dm>\n\t\t\t<pending_dm>N/A</pending_dm>\n"
        f"\t\t</driver_model>\n"
        f"\t\t<serial>{gpu.serial}</serial>\n\t\t<uuid>{gpu.uuid}</uuid>\n"
        f"\t\t<minor_number>{gpu.index}</minor_number>\n\t\t<vbios_version>{gpu.vbios}</vbios_version>\n"
        f"\t\t<multigpu_board>No</multigpu_board>\n\t\t<board_id>0x{gpu.board_id:x}</board_id>\n"
        f"\t\t<board_part_number>{model.board_part}</board_part_number>\n"
        f"\t\t<gpu_part_number>{model.gpu_part}</gpu_part_number>\n\t\t<gpu_fru_part_number>N/A</gpu_fru_part_number>\n"
        f"{module}"
        f"\t\t<inforom_version>\n\t\t\t<img_version>{gpu.inforom_image}</img_version>\n"
        f"\t\t\t<oem_object>2.1</oem_object>\n\t\t\t<ecc_object>{model.ecc_object}</ecc_object>\n"
        f"\t\t\t<pwr_object>N/A</pwr_object>\n\t\t</inforom_version>\n"
        f"\t\t<gpu_operation_mode>\n\t\t\t<current_gom>N/A</current_gom>\n\t\t\t<pending_gom>N/A</pending_gom>\n"
        f"\t\t</gpu_operation_mode>\n\t\t<gsp_firmware_version>{_gsp(machine, gpu)}</gsp_firmware_version>\n"
        f"\t\t<gpu_virtualization_mode>\n\t\t\t<virtualization_mode>None</virtualization_mode>\n"
        f"\t\t\t<host_vgpu_mode>N/A</host_vgpu_mode>\n\t\t</gpu_virtualization_mode>\n"
        f"\t\t<gpu_reset_status>\n\t\t\t<reset_required>{reset}</reset_required>\n"
        f"\t\t\t<drain_and_reset_recommended>{reset}</drain_and_reset_recommended>\n\t\t</gpu_reset_status>\n"
        + (f"\t\t<gpu_recovery_action>{gpu.recovery_action}</gpu_recovery_action>\n" if layout.recovery else "")
        + "\t\t<ibmnpu>\n\t\t\t<relaxed_ordering_mode>N/A</relaxed_ordering_mode>\n\t\t</ibmnpu>\n"
    )


def _gsp(machine: Machine, gpu: Gpu) -> str:
    """Only products since Turing have the processor that runs this firmware."""
    return "N/A" if gpu.model.architecture == "Volta" else machine.driver


def _mig_devices(gpu: Gpu) -> str:
    if not gpu.mig_current:
        return "\t\t<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>\n"
    share = gpu.model.memory_mib // 4 - 512
    devices = "".join(
        f"\t\t\t<mig_device>\n\t\t\t\t<index>{index}</index>\n\t\t\t\t<gpu_instance_id>{index + 3}</gpu_instance_id>\n"
        f"\t\t\t\t<compute_instance_id>0</compute_instance_id>\n\t\t\t\t<device_attributes>\n\t\t\t\t\t<shared>\n"
        f"\t\t\t\t\t\t<multiprocessor_count>{14 if index else 28}</multiprocessor_count>\n"
        f"\t\t\t\t\t\t<copy_engine_count>1</copy_engine_count>\n\t\t\t\t\t</shared>\n\t\t\t\t</device_attributes>\n"
        f"\t\t\t\t<ecc_error_count>\n\t\t\t\t\t<volatile_count>\n"
        f"\t\t\t\t\t\t<sram_uncorrectable>{gpu.volatile['sram_parity'] if not index else 0}</sram_uncorrectable>\n"
        f"\t\t\t\t\t</volatile_count>\n\t\t\t\t</ecc_error_count>\n\t\t\t\t<fb_memory_usage>\n"
        f"\t\t\t\t\t<total>{share} MiB</total>\n\t\t\t\t\t<reserved>0 MiB</reserved>\n\t\t\t\t\t<used>12 MiB</used>\n"
        f"\t\t\t\t\t<free>{share - 13} MiB</free>\n\t\t\t\t</fb_memory_usage>\n\t\t\t</mig_device>\n"
        for index in range(3)
    )
    return f"\t\t<mig_devices>\n{devices}\t\t</mig_devices>\n"


def _pci(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    model = gpu.model
    domain, bus, device = gpu.pci[:4], gpu.pci[5:7].upper(), gpu.pci[8:10].upper()
    free = model.pcie_gen if machine.load > 0.05 and not gpu.mig_current else model.idle_pcie_gen
    gen = min(free, gpu.pcie_gen_cap or free)
    return (
        f"\t\t<pci>\n\t\t\t<pci_bus>{bus}</pci_bus>\n\t\t\t<pci_device>{device}</pci_device>\n"
        f"\t\t\t<pci_domain>{domain}</pci_domain>\n\t\t\t<pci_device_id>{model.device_id:04X}10DE</pci_device_id>\n"
        f"\t\t\t<pci_bus_id>{gpu.smi_address}</pci_bus_id>\n"
        f"\t\t\t<pci_sub_system_id>{model.subsystem_id:08X}</pci_sub_system_id>\n"
        f"\t\t\t<pci_gpu_link_info>\n\t\t\t\t<pcie_gen>\n\t\t\t\t\t<max_link_gen>{model.pcie_gen}</max_link_gen>\n"
        f"\t\t\t\t\t<current_link_gen>{gen}</current_link_gen>\n"
        + (
            f"\t\t\t\t\t<device_current_link_gen>{gen}</device_current_link_gen>\n"
            f"\t\t\t\t\t<max_device_link_gen>{model.pcie_gen}</max_device_link_gen>\n"
            f"\t\t\t\t\t<max_host_link_gen>{max(4, model.pcie_gen)}</max_host_link_gen>\n"
            if layout.dtd != "nvsmi_device_v11.dtd"
            else ""
        )
        + f"\t\t\t\t</pcie_gen>\n\t\t\t\t<link_widths>\n\t\t\t\t\t<max_link_width>16x</max_link_width>\n"
        f"\t\t\t\t\t<current_link_width>{gpu.pcie_width}x</current_link_width>\n\t\t\t\t</link_widths>\n"
        f"\t\t\t</pci_gpu_link_info>\n\t\t\t<pci_bridge_chip>\n\t\t\t\t<bridge_chip_type>N/A</bridge_chip_type>\n"
        f"\t\t\t\t<bridge_chip_fw>N/A</bridge_chip_fw>\n\t\t\t</pci_bridge_chip>\n"
        f"\t\t\t<replay_counter>{gpu.pcie_replays}</replay_counter>\n"
        f"\t\t\t<replay_rollover_counter>0</replay_rollover_counter>\n"
        f"\t\t\t<tx_util>{int(machine.load * 812_000)} KB/s</tx_util>\n"
        f"\t\t\t<rx_util>{int(machine.load * 1_304_000)} KB/s</rx_util>\n"
        f"\t\t\t<atomic_caps_outbound>N/A</atomic_caps_outbound>\n"
        f"\t\t\t<atomic_caps_inbound>N/A</atomic_caps_inbound>\n\t\t</pci>\n"
    )


def utilization_percent(machine: Machine, gpu: Gpu) -> int:
    """Share of the last second in which the GPU computed."""
    if not machine.load or gpu.mig_current:
        return 0
    return min(100, int(100 * machine.load) + gpu.index % 3)


def temperature_c(machine: Machine, gpu: Gpu) -> int:
    """Of the GPU: inlet, load, place in the air stream and what is wrong with it."""
    return round(machine.inlet_c + 9 + gpu.slot_c + 27 * machine.load + gpu.heat_c)


def power_w(machine: Machine, gpu: Gpu) -> float:
    """Drawn now."""
    model = gpu.model
    wanted = model.idle_power_w + (model.power_w * 0.93 - model.idle_power_w) * machine.load
    return min(wanted + gpu.index % 4 * 1.7, gpu.power_limit_w * 0.995)


def sm_clock_mhz(machine: Machine, gpu: Gpu) -> int:
    """Clock of the multiprocessors."""
    model = gpu.model
    if machine.load < 0.05:
        return model.idle_sm_mhz
    if gpu.throttle & {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}:
        return int(model.max_sm_mhz * 0.35) // 15 * 15
    if gpu.power_limit_w < model.power_w * 0.98 or "sw_thermal_slowdown" in gpu.throttle:
        return int(model.max_sm_mhz * 0.65) // 15 * 15
    return int(model.max_sm_mhz * (1 - 0.12 * machine.load)) // 15 * 15


def _activity(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    model, busy = gpu.model, machine.load > 0.05
    active = set(gpu.throttle)
    if not busy and not gpu.throttle - {"sw_power_cap"}:
        active.add("gpu_idle")
    if busy and power_w(machine, gpu) > gpu.power_limit_w * 0.9:
        active.add("sw_power_cap")
    used = sum(process.used_mib for process in gpu.processes) + (model.reserved_mib // 300 if busy else 1)
    used = min(used, model.memory_mib - model.reserved_mib)
    percent = "N/A" if gpu.mig_current else f"{utilization_percent(machine, gpu)} %"
    name = f"clocks_{layout.reasons}_reason"
    reasons = "".join(
        f"\t\t\t<{name}_{reason}>{'Active' if reason in active else 'Not Active'}</{name}_{reason}>\n"
        for reason in REASONS
    )
    return (
        f"\t\t<fan_speed>{'N/A' if gpu.fan_percent is None else f'{gpu.fan_percent} %'}</fan_speed>\n"
        f"\t\t<performance_state>{'P0' if busy or model.hbm else 'P8'}</performance_state>\n"
        f"\t\t<{name}s>\n{reasons}\t\t</{name}s>\n"
        f"\t\t<fb_memory_usage>\n\t\t\t<total>{model.memory_mib} MiB</total>\n"
        f"\t\t\t<reserved>{model.reserved_mib} MiB</reserved>\n\t\t\t<used>{used} MiB</used>\n"
        f"\t\t\t<free>{model.memory_mib - model.reserved_mib - used} MiB</free>\n\t\t</fb_memory_usage>\n"
        f"\t\t<bar1_memory_usage>\n\t\t\t<total>{model.bar1_mib} MiB</total>\n\t\t\t<used>{1 + busy} MiB</used>\n"
        f"\t\t\t<free>{model.bar1_mib - (2 if busy else 1)} MiB</free>\n\t\t</bar1_memory_usage>\n"
        f"\t\t<compute_mode>Default</compute_mode>\n\t\t<utilization>\n\t\t\t<gpu_util>{percent}</gpu_util>\n"
        f"\t\t\t<memory_util>{percent if percent == 'N/A' else f'{int(machine.load * 42)} %'}</memory_util>\n"
        f"\t\t\t<encoder_util>0 %</encoder_util>\n\t\t\t<decoder_util>0 %</decoder_util>\n\t\t</utilization>\n"
        f"\t\t<encoder_stats>\n\t\t\t<session_count>0</session_count>\n\t\t\t<average_fps>0</average_fps>\n"
        f"\t\t\t<average_latency>0</average_latency>\n\t\t</encoder_stats>\n"
    )


def _heat(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    model, now = gpu.model, temperature_c(machine, gpu)
    memory = f"{round(now + 4 + 9 * machine.load + gpu.memory_heat_c)} C" if model.hbm else "N/A"
    memory_max = "95 C" if model.hbm else "N/A"
    if layout.tlimit and model.architecture in {"Hopper", "Blackwell", "Ada Lovelace"}:
        limits = (
            f"\t\t\t<gpu_temp_tlimit>{model.slow_c - 2 - now} C</gpu_temp_tlimit>\n"
            "\t\t\t<gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>\n"
            "\t\t\t<gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>\n"
            "\t\t\t<gpu_temp_max_gpu_tlimit_threshold>0 C</gpu_temp_max_gpu_tlimit_threshold>\n"
        )
    else:
        limits = (
            f"\t\t\t<gpu_temp_max_threshold>{model.max_c} C</gpu_temp_max_threshold>\n"
            f"\t\t\t<gpu_temp_slow_threshold>{model.slow_c} C</gpu_temp_slow_threshold>\n"
            f"\t\t\t<gpu_temp_max_gpu_threshold>{model.slow_c - 4} C</gpu_temp_max_gpu_threshold>\n"
        )
    return (
        f"\t\t<temperature>\n\t\t\t<gpu_temp>{now} C</gpu_temp>\n{limits}"
        f"\t\t\t<gpu_target_temperature>N/A</gpu_target_temperature>\n\t\t\t<memory_temp>{memory}</memory_temp>\n"
        f"\t\t\t<gpu_temp_max_mem_threshold>{memory_max}</gpu_temp_max_mem_threshold>\n\t\t</temperature>\n"
    )


def _power(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    model, draw, state = gpu.model, power_w(machine, gpu), "P0" if machine.load > 0.05 or gpu.model.hbm else "P8"
    limits = (
        f"\t\t\t<default_power_limit>{model.power_w:.2f} W</default_power_limit>\n"
        f"\t\t\t<min_power_limit>{model.min_power_w:.2f} W</min_power_limit>\n"
        f"\t\t\t<max_power_limit>{model.power_w:.2f} W</max_power_limit>\n"
    )
    if layout.power == "old":
        return (
            f"\t\t<power_readings>\n\t\t\t<power_state>{state}</power_state>\n"
            f"\t\t\t<power_management>Supported</power_management>\n\t\t\t<power_draw>{draw:.2f} W</power_draw>\n"
            f"\t\t\t<power_limit>{gpu.power_limit_w:.2f} W</power_limit>\n"
            f"\t\t\t<enforced_power_limit>{gpu.power_limit_w:.2f} W</enforced_power_limit>\n{limits}"
            f"\t\t</power_readings>\n"
        )
    drawn = (
        f"\t\t\t<power_draw>{draw:.2f} W</power_draw>\n"
        if layout.power == "single"
        else f"\t\t\t<average_power_draw>{draw:.2f} W</average_power_draw>\n"
        f"\t\t\t<instant_power_draw>{draw * 1.004:.2f} W</instant_power_draw>\n"
    )
    return (
        f"\t\t<gpu_power_readings>\n\t\t\t<power_state>{state}</power_state>\n{drawn}"
        f"\t\t\t<current_power_limit>{gpu.power_limit_w:.2f} W</current_power_limit>\n"
        f"\t\t\t<requested_power_limit>{gpu.power_limit_w:.2f} W</requested_power_limit>\n{limits}"
        f"\t\t</gpu_power_readings>\n\t\t<module_power_readings>\n\t\t\t<power_state>{state}</power_state>\n"
        f"\t\t\t<power_draw>N/A</power_draw>\n\t\t\t<current_power_limit>N/A</current_power_limit>\n"
        f"\t\t</module_power_readings>\n"
    )


def _clocks(machine: Machine, gpu: Gpu, layout: Layout) -> str:
    model, sm = gpu.model, sm_clock_mhz(machine, gpu)
    memory = model.memory_mhz if machine.load > 0.05 or model.hbm else 405
    fabric = (
        f"\t\t<fabric>\n\t\t\t<state>{gpu.fabric_state}</state>\n\t\t\t<status>{gpu.fabric_status}</status>\n"
        f"\t\t</fabric>\n"
        if layout.dtd != "nvsmi_device_v11.dtd"
        else ""
    )
    return (
        f"\t\t<clocks>\n\t\t\t<graphics_clock>{sm} MHz</graphics_clock>\n\t\t\t<sm_clock>{sm} MHz</sm_clock>\n"
        f"\t\t\t<mem_clock>{memory} MHz</mem_clock>\n\t\t\t<video_clock>{min(sm, model.video_mhz)} MHz</video_clock>\n"
        f"\t\t</clocks>\n\t\t<applications_clocks>\n\t\t\t<graphics_clock>{model.max_sm_mhz} MHz</graphics_clock>\n"
        f"\t\t\t<mem_clock>{model.memory_mhz} MHz</mem_clock>\n\t\t</applications_clocks>\n"
        f"\t\t<max_clocks>\n\t\t\t<graphics_clock>{model.max_sm_mhz} MHz</graphics_clock>\n"
        f"\t\t\t<sm_clock>{model.max_sm_mhz} MHz</sm_clock>\n\t\t\t<mem_clock>{model.memory_mhz} MHz</mem_clock>\n"
        f"\t\t\t<video_clock>{model.video_mhz} MHz</video_clock>\n\t\t</max_clocks>\n"
        f"\t\t<clock_policy>\n\t\t\t<auto_boost>N/A</auto_boost>\n\t\t\t<auto_boost_default>N/A</auto_boost_default>\n"
        f"\t\t</clock_policy>\n{fabric}{_supported_clocks(model)}"
    )


@lru_cache(maxsize=16)
def _supported_clocks(model: GpuModel) -> str:
    """The longest part of the real output: every clock in steps of 15 MHz."""
    clocks = "".join(
        f"\t\t\t\t<supported_graphics_clock>{clock} MHz</supported_graphics_clock>\n"
        for clock in range(model.max_sm_mhz, 209, -15)
    )
    return (
        f"\t\t<supported_clocks>\n\t\t\t<supported_mem_clock>\n\t\t\t\t<value>{model.memory_mhz} MHz</value>\n{clocks}"
        f"\t\t\t</supported_mem_clock>\n\t\t</supported_clocks>\n"
    )


def _processes(gpu: Gpu) -> str:
    instance = "3" if gpu.mig_current else "N/A"
    body = "".join(
        f"\t\t\t<process_info>\n\t\t\t\t<gpu_instance_id>{instance}</gpu_instance_id>\n"
        f"\t\t\t\t<compute_instance_id>{'0' if gpu.mig_current else 'N/A'}</compute_instance_id>\n"
        f"\t\t\t\t<pid>{process.pid}</pid>\n\t\t\t\t<type>C</type>\n"
        f"\t\t\t\t<process_name>{process.name}</process_name>\n"
        f"\t\t\t\t<used_memory>{process.used_mib} MiB</used_memory>\n\t\t\t</process_info>\n"
        for process in gpu.processes
    )
    return f"\t\t<processes>\n{body}\t\t</processes>\n\t\t<accounted_processes>\n\t\t</accounted_processes>\n"
