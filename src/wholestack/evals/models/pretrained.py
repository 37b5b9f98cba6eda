"""A checkpoint of our own training as a backend.

Named is a checkpoint, a folder of checkpoints, or a whole run: of a rehearsal the large run is taken, or the run
whose folder under ``jobs/`` is named. The tokenizer is that of the run's data, ``data/tokenizer.json`` in one of the
folders above the checkpoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

from wholestack.data.tokenizer import Tokenizer
from wholestack.errors import DataError, InputError, RecordError
from wholestack.evals.backend import Opening
from wholestack.evals.models.files import refuse_too_large
from wholestack.evals.models.local import LocalBackend, check_opening, identity_of
from wholestack.evals.models.reading import CachedNext
from wholestack.evals.models.tokens import TextTokens
from wholestack.evals.models.weights import refuse_not_finite
from wholestack.evals.scoring import score_choices
from wholestack.pretrain.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_checkpoints,
    load_checkpoint,
    weights_hash,
)
from wholestack.pretrain.model import Transformer
from wholestack.record import digest

CHECKPOINTS = "checkpoints"
TOKENIZER = "tokenizer.json"


def open_checkpoint(name: str, opening: Opening) -> LocalBackend:
    """Open a checkpoint of ``pretrain``.

    Raises:
        InputError: there is no whole checkpoint or no tokenizer, or they do not belong together.
    """
    check_opening(opening)
    path = _find(Path(name))
    checkpoint, tokens = _load(path), _PretrainTokens(_tokenizer(path))
    config = checkpoint.model_config
    if tokens.tokenizer.vocab_size != config.vocab_size:
        raise InputError(
            f"{name}: the model has {config.vocab_size} tokens, its tokenizer {tokens.tokenizer.vocab_size}",
            remedy="put the tokenizer of its training data beside it as tokenizer.json",
        )
    if opening.threads is not None:
        torch.set_num_threads(opening.threads)
    count = sum(each.numel() for each in checkpoint.weights.values())
    refuse_too_large(name, count, opening.dtype)
    model = Transformer(config, dtype=getattr(torch, opening.dtype))
    try:
        model.load_state_dict(checkpoint.weights)
    except RuntimeError as error:
        raise InputError(
            f"{name}: its weights are not those of this version's model",
            remedy="use the version of wholestack that trained it",
        ) from error
    return backend_of(
        model,
        kind="pretrain",
        name=_named(name, path),
        tokens=tokens,
        content={"weights": weights_hash(checkpoint.weights), "config": digest(config)},
        opening=opening,
    )


def backend_of(
    model: Transformer, *, kind: str, name: str, tokens: TextTokens, content: dict[str, str], opening: Opening
) -> LocalBackend:
    """The backend of a model of ours that is in memory.

    Args:
        model: Put onto the device and into evaluation mode.
        kind: What the identity calls it.
        name: As the user said it.
        tokens: Its tokenizer.
        content: Hashes of weights and configuration.
        opening: Dtype, device, rows at a time.

    Raises:
        InputError: a weight is no number.
    """
    refuse_not_finite(name, model.named_parameters())
    model.eval().to(opening.device)
    return LocalBackend(
        identity=identity_of(
            kind=kind,
            name=name,
            parameters=sum(each.numel() for each in model.state_dict().values()),
            opening=opening,
            tokens=tokens,
            context_tokens=model.config.context,
            content=content,
            versions={"torch": version("torch"), "wholestack": version("wholestack")},
        ),
        tokens=tokens,
        context_tokens=model.config.context,
        vocabulary=model.config.vocab_size,
        batch_size=opening.batch_size,
        scorer=partial(score_choices, model, device=opening.device),
        module=model,
        next_tokens=CachedNext(model=_Uncached(model), device=opening.device),
    )


def _named(name: str, found: Path) -> str:
    """As the user called it, and which run of it was taken."""
    run = found.parent if found.name == CHECKPOINTS else found
    return name if run == Path(name) or found.suffix == ".pt" else f"{name.rstrip('/')}:{run.name}"


def _find(path: Path) -> Path:
    """The one checkpoint, or folder of checkpoints, that a path means."""
    if path.suffix == ".pt":
        return path
    found = _candidates(path)
    large = [each for each in found if each.parent.name.startswith("large-")]
    if len(large or found) == 1:
        return (large or found)[0]
    names = ", ".join(str(each.parent) for each in (large or found)[:4])
    raise InputError(f"{path}: holds {len(found)} runs with checkpoints", remedy=f"name one of {names}")


def _candidates(path: Path) -> list[Path]:
    """Folders with checkpoints: the path itself, its ``checkpoints``, or those of the runs under ``jobs``."""
    for folders in ([path], [path / CHECKPOINTS], path.glob(f"jobs/*/{CHECKPOINTS}")):
        found = sorted(folder for folder in folders if list_checkpoints(folder))
        if found:
            return found
    return []


def _load(path: Path) -> Checkpoint:
    try:
        found = latest_checkpoint(path) if path.is_dir() else load_checkpoint(path)
    except RecordError as error:
        raise InputError(error.message, remedy=error.remedy) from error
    if found is None:
        raise InputError(f"{path}: holds no checkpoint")
    return found


def _tokenizer(checkpoint: Path) -> Tokenizer:
    """The nearest ``tokenizer.json`` or ``data/tokenizer.json`` above a checkpoint."""
    for folder in (checkpoint, *checkpoint.resolve().parents)[:5]:
        for path in (folder / TOKENIZER, folder / "data" / TOKENIZER):
            if path.is_file():
                try:
                    return Tokenizer.load(path)
                except (DataError, RecordError) as error:
                    raise InputError(error.message, remedy=error.remedy) from error
    raise InputError(
        f"{checkpoint}: no tokenizer.json beside or above it", remedy="copy the tokenizer of its data there"
    )


@dataclass(frozen=True)
class _PretrainTokens:
    """Our own tokenizer; what ends a document also stands for an empty context."""

    tokenizer: Tokenizer
    prefix_token: int | None = None

    @property
    def empty_context_token(self) -> int:
        return self.tokenizer.end_of_document

    @property
    def end_tokens(self) -> tuple[int, ...]:
        return (self.tokenizer.end_of_document,)

    @property
    def digest(self) -> str:
        return self.tokenizer.digest

    def encode(self, text: str) -> list[int]:
        return [int(token) for token in self.tokenizer.encode(text)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens)


@dataclass(frozen=True)
class _Uncached:
    """Our model for the writer: it has no cache, so every text is read from its start."""

    model: Transformer
    shared_tokens: int = 0

    def read(
        self,
        tokens: Tensor,
        *,
        past: None = None,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        keep: bool = False,
    ) -> tuple[Tensor, None]:
        return self.model.hidden(tokens, positions, mask), None

    def remember(self, tokens: Tensor) -> None:
        return None

    def repeated(self, past: None, rows: int) -> None:
        return None

    def unembed(self, hidden: Tensor) -> Tensor:
        return self.model.unembed(hidden)
