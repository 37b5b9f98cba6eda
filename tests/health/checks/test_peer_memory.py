"""Adapters reach GPU memory directly where both are there."""

from tests.health.gpu_host import MODULE_VERSION, MODULES, MOMENT, look, lspci, told

WITHOUT = "".join(line + "\n" for line in MODULES.splitlines() if not line.startswith("nvidia_peermem"))
OPEN = MODULE_VERSION.replace("NVIDIA UNIX x86_64 Kernel Module", "NVIDIA UNIX Open Kernel Module for x86_64")
NO_HCA = "\n".join(line for line in lspci().splitlines() if "0207" not in line) + "\n"


def test_neither_peermem_nor_dma_buf_is_a_warning():
    assert told(modules=WITHOUT) == [("gpu.peer_memory", "host", "warn")]


def test_an_open_module_on_a_recent_kernel_has_dma_buf_and_needs_none():
    assert told(modules=WITHOUT, driver_version=OPEN) == []
    old = MOMENT.replace("5.15.0", "5.4.0")
    assert told(modules=WITHOUT, driver_version=OPEN, moment=old) == [("gpu.peer_memory", "host", "warn")]


def test_without_adapters_or_gpus_it_is_not_needed():
    for pci in (NO_HCA, "\n".join(line for line in lspci().splitlines() if "0302" not in line) + "\n"):
        assert "gpu.peer_memory" in {each.check for each in look(modules=WITHOUT, pci=pci).skipped}


def test_whether_it_is_loaded_is_a_trait():
    assert {trait.name: trait.value for trait in look().traits}["gpu.peermem_loaded"] is True
