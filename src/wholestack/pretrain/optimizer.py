"""AdamW (Loshchilov and Hutter 2019) over flat buffers, with parameter groups.

Groups, their learning rate and decay:

========== ================================== ============ =======================================================
group      holds                              decay        learning rate
========== ================================== ============ =======================================================
matrix     matrices of the blocks, the head   weight_decay lr * reference_width / width
embedding  the embedding                      none         lr * embedding_lr_ratio
tied       an embedding that is also the head none         lr * reference_width / width
gain       gains of the norms                 none         lr * embedding_lr_ratio
========== ================================== ============ =======================================================

Decay shrinks a matrix whose output the next norm rescales anyway, so it sets the relative size of a step. A gain is
that scale itself, and rows of an embedding get a gradient only when their token occurs, so decay would shrink rare
tokens towards nothing. The rule for the width is that of Yang et al. 2022 (muP) for Adam: a matrix's update has
entries of size lr, summed over its fan-in, so lr falls as 1/width to leave the change of its output alone; a row of
an embedding is picked, not summed, so its lr stays.

The parameters of a group are views of one buffer, and their gradients of another: the norm, the clipping and the
update are a handful of kernels whatever the number of layers, and the clipping factor goes into the update instead
of a pass of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wholestack.pretrain.config import OptimizerConfig
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.schedule import lr_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerState:
    """Moments of AdamW, one flat tensor a group, and the steps taken."""

    steps: int
    """Updates made."""
    first: dict[str, Tensor]
    """First moment by group."""
    second: dict[str, Tensor]
    """Second moment by group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    weights: Tensor
    gradients: Tensor
    first: Tensor
    second: Tensor
    steps: Tensor
    """A scalar tensor: the fused kernel counts in it."""
    lr_scale: float
    weight_decay: float


class FlatAdamW:
    """The optimizer of one model. Moves the model's parameters into flat buffers; move the model to its device before.

    Args:
        model: Its parameters are replaced by views.
        config: Learning rate, schedule, decay, clipping.
    """

    def __init__(self, model: Transformer, config: OptimizerConfig) -> None:
        self._config = config
        members = _members(model)
        sizes = {name: sum(p.numel() for p in parameters) for name, parameters in members.items()}
        like, width_scale = model.embedding, config.reference_width / model.config.width
        self._gradients = torch.zeros(sum(sizes.values()), dtype=like.dtype, device=like.device)
        self._groups: dict[str, _Group] = {}
        offset = 0
        for name, parameters in members.items():
            gradients = self._gradients[offset : offset + sizes[name]]
            offset += sizes[name]
            weights = _flatten(parameters, gradients)
            self._groups[name] = _Group(
                weights=weights,
                gradients=gradients,
                first=torch.zeros_like(weights),
                second=torch.zeros_like(weights),
                steps=torch.zeros((), dtype=torch.float32, device=like.device),
                lr_scale=width_scale if name in ("matrix", "tied") else config.embedding_lr_ratio,
                weight_decay=config.weight_decay if name == "matrix" else 0.0,
            )

    def zero_gradients(self) -> None:
        """Forget the gradients of the last step."""
        self._gradients.zero_()

    @torch.no_grad()
    def step(self, step: int) -> Tensor:
        """Clip and update.

        Args:
            step: Number of this step for the schedule, 0 for the first.

        Returns:
            Scalar: the gradient norm before clipping. If it is not finite nothing is changed.
        """
        norm: Tensor = torch.linalg.vector_norm(self._gradients)
        if not torch.isfinite(norm):
            return norm
        shrink = (norm / self._config.clip_norm).clamp(min=1.0).float()  # gradients are divided by it
        lr = self._config.lr * lr_fraction(self._config, step)
        for group in self._groups.values():
            self._update(group, lr * group.lr_scale, shrink)
        return norm

    def state(self) -> OptimizerState:
        """A copy of the moments."""
        return OptimizerState(
            steps=int(next(iter(self._groups.values())).steps),
            first={name: group.first.clone() for name, group in self._groups.items()},
            second={name: group.second.clone() for name, group in self._groups.items()},
        )

    @torch.no_grad()
    def restore(self, state: OptimizerState) -> None:
        """Take over the moments of :meth:`state`."""
        for name, group in self._groups.items():
            group.first.copy_(state.first[name])
            group.second.copy_(state.second[name])
            group.steps.fill_(state.steps)

    def _update(self, group: _Group, lr: float, shrink: Tensor) -> None:
        torch._fused_adamw_(
            [group.weights],
            [group.gradients],
            [group.first],
            [group.second],
            [],
            [group.steps.add_(1)],
            lr=lr,
            beta1=self._config.beta1,
            beta2=self._config.beta2,
            weight_decay=group.weight_decay,
            eps=self._config.epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=shrink,
            found_inf=None,
        )


def _members(model: Transformer) -> dict[str, list[nn.Parameter]]:
    """Parameters by group, in the model's order."""
    embedding = "tied" if model.head is None else "embedding"
    members: dict[str, list[nn.Parameter]] = {"matrix": [], embedding: [], "gain": []}
    for parameter in model.parameters():
        kind = embedding if parameter is model.embedding else "gain" if parameter.dim() == 1 else "matrix"
        members[kind].append(parameter)
    return members


@torch.no_grad()
def _flatten(parameters: list[nn.Parameter], gradients: Tensor) -> Tensor:
    """Make the parameters views of one new buffer, which is returned, and their gradients views of ``gradients``."""
    flat = torch.cat([parameter.reshape(-1) for parameter in parameters])
    offset = 0
    for parameter in parameters:
        end = offset + parameter.numel()
        shape = parameter.shape
        parameter.data = flat[offset:end].view(shape)
        parameter.grad = gradients[offset:end].view(shape)
        offset = end
    return flat
