"""Two operations with their gradients written out, because at tiny sizes a step is bound by passes over memory.

RMSNorm, of a row x of n numbers with gain w::

    r = (mean(x^2) + eps)^-1/2,   y = r x w
    dL/dx = r (g w - r x mean(g w r x)),   dL/dw = sum over rows of g r x        (g = dL/dy)

Cross-entropy, mean over N rows of logits with target t::

    L = -mean log softmax(l)[t],   dL/dl = (softmax(l) - onehot(t)) / N

torch's own do the same in more passes: these take about a quarter to a third less CPU time on one thread (see
docs/benchmarks/tiny_training.md). A compiled model uses torch's.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


def rms_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """Divide every row (last dimension) by its root mean square and multiply by ``gain``."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled() or x.dtype not in (torch.float32, torch.float64):
        return F.rms_norm(x, gain.shape, gain.to(x.dtype), epsilon)
    normed: Tensor = _RMSNorm.apply(x, gain, epsilon)  # type: ignore[no-untyped-call]
    return normed


def mean_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log probability.

    Args:
        logits: ``[N, V]``.
        targets: ``[N]`` integers below V.

    Returns:
        A scalar, nats.
    """
    loss: Tensor = _MeanCrossEntropy.apply(logits, targets)  # type: ignore[no-untyped-call]
    return loss


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = norm.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
        normed = x * scale
        ctx.save_for_backward(normed, scale, gain)
        scaled: Tensor = normed * gain
        return scaled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        normed, scale, gain = ctx.saved_tensors
        product: Tensor = (gradient * normed).flatten(0, -2)
        mean = torch.mv(product, gain).view(scale.shape).div_(normed.shape[-1])
        slope: Tensor = torch.addcmul(gradient * gain, normed, mean, value=-1).mul_(scale)
        return slope, product.sum(0), None


class _MeanCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        probabilities = torch.softmax(logits, -1)
        rows = targets[:, None]
        loss: Tensor = -probabilities.gather(1, rows).log().mean()
        if not torch.isfinite(loss):  # a probability below the smallest float: its logarithm is still a number
            loss = -logits.log_softmax(-1).gather(1, rows).mean()
        ctx.save_for_backward(probabilities, rows)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        probabilities, rows = ctx.saved_tensors
        slope: Tensor = probabilities.scatter_add(1, rows, probabilities.new_full(rows.shape, -1.0))
        return slope.mul_(gradient / len(rows)), None
