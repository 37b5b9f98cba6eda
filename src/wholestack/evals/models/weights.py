"""Weights that are in memory: every one a number."""

from collections.abc import Iterable

import torch

from wholestack.errors import InputError


def refuse_not_finite(name: str, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Refuse a model of which a weight is no number: what it gives is none either, or looks like one by luck.

    Args:
        name: The model, for the message.
        weights: Name and values of each tensor.

    Raises:
        InputError: a weight is infinite or NaN; names its tensor.
    """
    for tensor, values in weights:
        if not values.is_floating_point() or not values.numel():
            continue
        # Least and largest: a NaN among the values is both, and no tensor of the same size is made for it.
        if not torch.stack(torch.aminmax(values.detach())).isfinite().all():
            raise InputError(
                f"{name}: {tensor} holds NaN or infinity", remedy="copy its files again, or take another checkpoint"
            )
