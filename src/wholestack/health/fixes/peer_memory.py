"""The module by which InfiniBand adapters reach the GPUs' memory (NVIDIA GPUDirect RDMA documentation)."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="peer_memory",
            says="load nvidia_peermem",
            causes=("gpu.peer_memory", "gpu.peer_memory_differs"),
            source="NVIDIA GPUDirect RDMA documentation, nvidia-peermem; modprobe(8)",
        ),
        lines=lambda fault: ("modprobe nvidia_peermem",),
    ),
)
