"""The part of ``nvidia-smi -q -x`` on errors of the GPU's memory.

Volta counts single and double bit errors and retires pages; since Ampere the driver counts SRAM and DRAM apart and
remaps rows (NVIDIA, GPU Memory Error Management). Where ECC is off, all counters read ``N/A``; where MIG is on, the
remapped rows do.
"""

from wholestack.health.simulator.hardware import Gpu
from wholestack.health.simulator.tools.smi_layout import Layout


def memory_errors(gpu: Gpu, layout: Layout) -> str:
    """ECC mode and counters, retired pages, remapped rows."""
    mode = ("Enabled" if gpu.ecc_current else "Disabled", "Enabled" if gpu.ecc_pending else "Disabled")
    return (
        f"\t\t<ecc_mode>\n\t\t\t<current_ecc>{mode[0]}</current_ecc>\n\t\t\t<pending_ecc>{mode[1]}</pending_ecc>\n"
        f"\t\t</ecc_mode>\n\t\t<ecc_errors>\n\t\t\t<volatile>\n{_ecc(gpu, gpu.volatile, layout)}\t\t\t</volatile>\n"
        f"\t\t\t<aggregate>\n{_ecc(gpu, gpu.aggregate, layout)}{_threshold(gpu, layout)}\t\t\t</aggregate>\n"
        f"{_sources(gpu, layout)}\t\t</ecc_errors>\n{_retired(gpu)}{_remapped(gpu)}"
    )


def _has_split_sram(gpu: Gpu, layout: Layout) -> bool:
    return layout.split_sram and gpu.model.remap_banks > 0


def _ecc(gpu: Gpu, counts: dict[str, int], layout: Layout) -> str:
    indent = "\t\t\t\t"
    if not gpu.ecc_current:
        counts = {}
    if not gpu.model.remap_banks:
        single, double = counts.get("dram_c", "N/A"), counts.get("dram_u", "N/A")
        return "".join(
            f"{indent}<{width}_bit>\n{indent}\t<device_memory>{count}</device_memory>\n"
            f"{indent}\t<register_file>{rest}</register_file>\n{indent}\t<l2_cache>{rest}</l2_cache>\n"
            f"{indent}\t<total>{count}</total>\n{indent}</{width}_bit>\n"
            for width, count, rest in (
                ("single", single, "N/A" if single == "N/A" else 0),
                ("double", double, "N/A" if double == "N/A" else 0),
            )
        )
    parity, secded = counts.get("sram_parity"), counts.get("sram_secded")
    if _has_split_sram(gpu, layout):
        sram = (
            f"{indent}<sram_uncorrectable_parity>{_na(parity)}</sram_uncorrectable_parity>\n"
            f"{indent}<sram_uncorrectable_secded>{_na(secded)}</sram_uncorrectable_secded>\n"
        )
    else:
        total = None if parity is None or secded is None else parity + secded
        sram = f"{indent}<sram_uncorrectable>{_na(total)}</sram_uncorrectable>\n"
    return (
        f"{indent}<sram_correctable>{_na(counts.get('sram_c'))}</sram_correctable>\n{sram}"
        f"{indent}<dram_correctable>{_na(counts.get('dram_c'))}</dram_correctable>\n"
        f"{indent}<dram_uncorrectable>{_na(counts.get('dram_u'))}</dram_uncorrectable>\n"
    )


def _na(count: int | None) -> str:
    return "N/A" if count is None else str(count)


def _threshold(gpu: Gpu, layout: Layout) -> str:
    if not _has_split_sram(gpu, layout):
        return ""
    exceeded = "Yes" if gpu.sram_threshold_exceeded else "No"
    return f"\t\t\t\t<sram_threshold_exceeded>{exceeded}</sram_threshold_exceeded>\n"


def _sources(gpu: Gpu, layout: Layout) -> str:
    if not _has_split_sram(gpu, layout):
        return ""
    uncorrected = gpu.aggregate["sram_parity"] + gpu.aggregate["sram_secded"]
    repairs = (
        "\t\t\t<channel_repair_pending>No</channel_repair_pending>\n\t\t\t<tpc_repair_pending>No</tpc_repair_pending>\n"
        if layout.repairs
        else ""
    )
    return (
        f"\t\t\t<aggregate_uncorrectable_sram_sources>\n\t\t\t\t<sram_l2>{uncorrected}</sram_l2>\n"
        "\t\t\t\t<sram_sm>0</sram_sm>\n\t\t\t\t<sram_microcontroller>0</sram_microcontroller>\n"
        "\t\t\t\t<sram_pcie>0</sram_pcie>\n\t\t\t\t<sram_other>0</sram_other>\n"
        f"\t\t\t</aggregate_uncorrectable_sram_sources>\n{repairs}"
    )


def _retired(gpu: Gpu) -> str:
    if gpu.model.remap_banks:
        single = double = pending = "N/A"
    else:
        single, double = str(gpu.retired_single), str(gpu.retired_double)
        pending = "Yes" if gpu.retired_pending else "No"
    return "".join(
        (
            "\t\t<retired_pages>\n",
            *(
                f"\t\t\t<{name}>\n\t\t\t\t<retired_count>{count}</retired_count>\n{_pages(count)}\t\t\t</{name}>\n"
                for name, count in (("multiple_single_bit_retirement", single), ("double_bit_retirement", double))
            ),
            f"\t\t\t<pending_blacklist>{pending}</pending_blacklist>\n"
            f"\t\t\t<pending_retirement>{pending}</pending_retirement>\n\t\t</retired_pages>\n",
        )
    )


def _pages(count: str) -> str:
    if count == "N/A":
        return "\t\t\t\t<retired_pagelist>N/A</retired_pagelist>\n"
    pages = "".join(
        f"\t\t\t\t\t<retired_page_address>0x{0x1F3A00 + 0x51 * page:016x}</retired_page_address>\n"
        for page in range(int(count))
    )
    return f"\t\t\t\t<retired_pagelist>\n{pages}\t\t\t\t</retired_pagelist>\n"


def _remapped(gpu: Gpu) -> str:
    if not gpu.model.remap_banks or gpu.mig_current:
        return "\t\t<remapped_rows>N/A</remapped_rows>\n"
    used = gpu.remapped_correctable + gpu.remapped_uncorrectable
    banks, worst = gpu.model.remap_banks, 1 if gpu.remap_failure else 0
    return (
        f"\t\t<remapped_rows>\n\t\t\t<remapped_row_corr>{gpu.remapped_correctable}</remapped_row_corr>\n"
        f"\t\t\t<remapped_row_unc>{gpu.remapped_uncorrectable}</remapped_row_unc>\n"
        f"\t\t\t<remapped_row_pending>{'Yes' if gpu.remap_pending else 'No'}</remapped_row_pending>\n"
        f"\t\t\t<remapped_row_failure>{'Yes' if gpu.remap_failure else 'No'}</remapped_row_failure>\n"
        f"\t\t\t<row_remapper_histogram>\n"
        f"\t\t\t\t<row_remapper_histogram_max>{banks - used - worst} bank(s)</row_remapper_histogram_max>\n"
        f"\t\t\t\t<row_remapper_histogram_high>{used} bank(s)</row_remapper_histogram_high>\n"
        f"\t\t\t\t<row_remapper_histogram_partial>0 bank(s)</row_remapper_histogram_partial>\n"
        f"\t\t\t\t<row_remapper_histogram_low>0 bank(s)</row_remapper_histogram_low>\n"
        f"\t\t\t\t<row_remapper_histogram_none>{worst} bank(s)</row_remapper_histogram_none>\n"
        f"\t\t\t</row_remapper_histogram>\n\t\t</remapped_rows>\n"
    )
