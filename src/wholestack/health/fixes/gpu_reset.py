"""One GPU, reset; nvidia-smi itself refuses where a process uses it (nvidia-smi manual page, --gpu-reset)."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="gpu_reset",
            says="reset the GPU, so that pending repairs of its memory take place",
            causes=(
                "gpu.row_remap_pending",
                "gpu.retired_pages_pending",
                "gpu.repair_pending",
                "gpu.ecc_uncorrected",
                "gpu.mig_pending",
            ),
            source="nvidia-smi(1), --gpu-reset; NVIDIA GPU Memory Error Management, row remapping",
            settle_s=30,
        ),
        lines=lambda fault: (f"nvidia-smi --gpu-reset -i {fault.gpu()}",),
        limit_s=180,
    ),
)
