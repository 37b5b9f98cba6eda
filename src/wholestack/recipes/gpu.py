"""The same rehearsal for one CUDA device in bfloat16, compiled. Written, not tested: no such device was at hand."""

from dataclasses import replace

from wholestack.experiments.recipe import Recipe
from wholestack.recipes.laptop import laptop


def gpu() -> Recipe:
    """One worker at a time, since trials would share the device; a larger vocabulary and context than the laptop's."""
    return replace(
        laptop(),
        name="gpu",
        vocab_size=2048,
        context=256,
        device="cuda",
        precision="bfloat16",
        workers=1,
        large_threads=1,
    )
