"""Hand-written gradients against numerical ones and torch's own operations."""

import pytest
import torch
import torch.nn.functional as F

from wholestack.pretrain.kernels import mean_cross_entropy, rms_norm


def test_rms_norm_has_the_gradients_that_differences_give():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 3, 8, dtype=torch.float64, generator=generator, requires_grad=True)
    gain = torch.randn(8, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: rms_norm(a, b, 0.1), (x, gain))


@pytest.mark.parametrize("shape", [(5, 32), (2, 3, 16), (2, 3, 4, 8)])
def test_rms_norm_is_torchs_own(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2)).requires_grad_()
    gain = torch.linspace(0.5, 2, shape[-1]).requires_grad_()
    torch.testing.assert_close(rms_norm(x, gain, 1e-6), F.rms_norm(x, gain.shape, gain, 1e-6))
    with torch.no_grad():
        torch.testing.assert_close(rms_norm(x, gain, 1e-6), F.rms_norm(x, gain.shape, gain, 1e-6))


def test_cross_entropy_has_the_gradients_that_differences_give():
    logits = torch.randn(6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    targets = torch.tensor([0, 8, 3, 3, 1, 7])
    assert torch.autograd.gradcheck(lambda a: 2 * mean_cross_entropy(a, targets), (logits,))


@pytest.mark.parametrize("size", [1.0, 30.0, 1000.0])
def test_cross_entropy_is_torchs_own_also_where_probabilities_underflow(size):
    logits = (size * torch.randn(6, 9, generator=torch.Generator().manual_seed(4))).requires_grad_()
    targets = torch.tensor([0, 8, 3, 3, 1, 7])
    torch.testing.assert_close(mean_cross_entropy(logits, targets), F.cross_entropy(logits, targets))


def test_cross_entropy_of_a_model_that_is_not_finite_is_not_finite():
    assert not torch.isfinite(mean_cross_entropy(torch.full((2, 3), float("nan")), torch.tensor([0, 1])))
