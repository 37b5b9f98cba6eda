"""ECC on: ``nvidia-smi -e 1``, which takes place at the next reset (nvidia-smi manual page)."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="gpu_ecc",
            says="turn ECC on and reset the GPU",
            causes=("gpu.ecc_mode",),
            source="nvidia-smi(1), -e and --gpu-reset",
            settle_s=30,
        ),
        lines=lambda fault: (f"nvidia-smi -i {fault.gpu()} -e 1", f"nvidia-smi --gpu-reset -i {fault.gpu()}"),
        limit_s=180,
    ),
)
