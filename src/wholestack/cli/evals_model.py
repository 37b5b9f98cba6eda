"""What a command says about its model besides the name."""

import os
import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from wholestack.evals.backend import Backend, Opening
from wholestack.evals.models.opening import open_backend


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model computes, or how an endpoint is asked."""

    dtype: Literal["float32", "bfloat16", "float64"] = "float32"
    """Arithmetic of a local model."""
    device: str = "cpu"
    """Where a local model computes."""
    threads: int | None = None
    """Of a local model."""
    batch_size: int = 8
    """Rows that a local model computes at a time; changes no number."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds an endpoint's key."""
    usd_per_million_tokens: Annotated[tuple[float, float] | None, Parameter(negative="")] = None
    """Price of an endpoint's tokens, read and written, for the estimate."""
    requests_at_a_time: int = 4
    """To an endpoint."""

    def open(self, model: str) -> Backend:
        """The model of this name; says so first, for a large one takes minutes.

        Raises:
            InputError: it is none, or cannot be opened.
        """
        print("opening the model ...", file=sys.stderr)
        opening = Opening(
            dtype=self.dtype,
            device=self.device,
            threads=self.threads,
            batch_size=self.batch_size,
            api_key=os.environ.get(self.api_key_variable, ""),
            usd_per_million_tokens=self.usd_per_million_tokens,
            requests_at_a_time=self.requests_at_a_time,
        )
        return open_backend(model, opening)


COMPUTING = ModelOptions()
"""As it is where nothing is said."""
