"""Numbers against GPyTorch (float64), gradients also against differences."""

import gpytorch
import numpy as np
import pytest
import torch

from wholestack.search import kernel
from wholestack.search.surrogate import condition_on

D = 4
ORDERED = np.ones(D, bool)


def draw(seed, n=25):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    return x, np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.1 * rng.normal(size=n), rng.normal(scale=0.5, size=2 * D + 2)


class Oracle(gpytorch.models.ExactGP):
    """The same model out of GPyTorch's parts."""

    def __init__(self, x, y, theta):
        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.Positive())
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        matern = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=D))
        linear = gpytorch.kernels.LinearKernel(ard_num_dims=D)
        constant = gpytorch.kernels.ConstantKernel()
        self.covar_module = matern + linear + constant
        self.double()
        plain = torch.tensor(np.exp(theta))
        matern.base_kernel.lengthscale = plain[:D]
        linear.variance = plain[D : 2 * D].reshape(linear.variance.shape)
        matern.outputscale = plain[2 * D]
        constant.constant = torch.tensor(1.0)
        likelihood.noise = plain[2 * D + 1]
        self.parts = (matern, linear, likelihood)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@pytest.mark.parametrize("seed", range(3))
def test_marginal_likelihood_and_gradient_agree_with_gpytorch(seed):
    x, y, theta = draw(seed)
    model = Oracle(torch.tensor(x), torch.tensor(y), theta)
    model.train()
    with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.cholesky_jitter(1e-12, 1e-12):
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        loss = -len(y) * marginal(model(torch.tensor(x)), torch.tensor(y))
        loss.backward()
    value, gradient = kernel.negative_log_likelihood(theta, x, y, ORDERED)
    assert value == pytest.approx(loss.item(), rel=1e-6)
    matern, linear, likelihood = model.parts

    def by_log(module, name):
        raw = getattr(module, f"raw_{name}")
        plain = getattr(module, name).detach()
        slope = 1.0 - torch.exp(-plain)  # of softplus, by the plain value
        return (raw.grad / slope * plain).reshape(-1).numpy()

    noise = likelihood.noise_covar
    expected = np.concatenate(
        [
            by_log(matern.base_kernel, "lengthscale"),
            by_log(linear, "variance"),
            by_log(matern, "outputscale"),
            by_log(noise, "noise"),
        ]
    )
    assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_posterior_mean_and_variance_agree_with_gpytorch(seed):
    x, y, theta = draw(seed)
    points = np.random.default_rng(seed + 100).normal(size=(17, D))
    model = Oracle(torch.tensor(x), torch.tensor(y), theta)
    model.eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        expected = model(torch.tensor(points))
    found = condition_on(x, y, ORDERED, theta).predict(points)
    assert found.mean == pytest.approx(expected.mean.numpy(), rel=1e-5, abs=1e-6)
    assert found.deviation**2 == pytest.approx(expected.variance.numpy(), rel=1e-4, abs=1e-7)


def test_gradient_agrees_with_differences_when_columns_are_categorical():
    rng = np.random.default_rng(5)
    ordered = np.array([True, False, True, False])
    x = rng.normal(size=(20, D))
    x[:, 1], x[:, 3] = rng.integers(0, 3, 20), rng.integers(0, 2, 20)
    y, theta = rng.normal(size=20), rng.normal(scale=0.3, size=2 * D + 2)
    _, gradient = kernel.negative_log_likelihood(theta, x, y, ordered)
    step = 1e-5

    def at(shift):
        return kernel.negative_log_likelihood(theta + shift, x, y, ordered)[0]

    expected = [(at(step * unit) - at(-step * unit)) / (2 * step) for unit in np.eye(2 * D + 2)]
    assert gradient == pytest.approx(expected, abs=1e-6)


def test_categorical_covariance_depends_on_equality_alone_and_is_positive_definite():
    ordered = np.array([False, True])
    theta = np.zeros(6)
    x = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    k = kernel.covariance(theta, x, x, ordered)
    assert k[0, 1] == k[0, 2] == k[1, 2] < k[0, 0]
    assert np.linalg.eigvalsh(k).min() > 0
    assert np.diag(k) == pytest.approx(kernel.variance(theta, x, ordered))


def test_repeated_points_can_be_factorised_and_a_non_positive_matrix_raises():
    kernel.cholesky(np.ones((5, 5)) + 1e-8 * np.eye(5))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        kernel.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
