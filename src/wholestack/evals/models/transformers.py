"""A local Hugging Face folder as a backend: configuration, tokenizer and safetensors; nothing is fetched, no code of
the folder runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging as hub_logging

from wholestack.errors import InputError
from wholestack.evals import staged
from wholestack.evals.backend import Opening
from wholestack.evals.models.cached import CachedTransformer, wrap
from wholestack.evals.models.files import files_hash, refuse_too_large
from wholestack.evals.models.local import LocalBackend, check_opening, identity_of
from wholestack.evals.models.reading import CachedNext
from wholestack.evals.models.tokens import HubTokens, hub_tokens
from wholestack.evals.models.weights import refuse_not_finite
from wholestack.evals.prepared import PreparedItems
from wholestack.evals.scoring import ChoiceScores

CAUSAL: Any = AutoModelForCausalLM
"""Untyped in parts, as is the next."""
_LOGGING: Any = hub_logging
CONFIG = "config.json"
DEFAULT_CONTEXT_TOKENS = 2048
"""Of a model whose configuration names no length."""
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
)
_NOT_TOKENIZER = (CONFIG, "model.safetensors.index.json")
"""Hashed as configuration, or only naming files that are hashed."""
_SMALL_BYTES = 64 << 20
_CANNOT_LOAD = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, ImportError, ArithmeticError,
    AssertionError, SafetensorError,
)  # fmt: skip
"""What transformers raises for files that are damaged or of a kind that it does not know."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model of transformers and what it takes to use it."""

    kind: str
    name: str
    model: Any
    tokens: HubTokens
    content: dict[str, str]
    """Hashes of what the numbers come from besides the tokenizer."""


def open_folder(name: str, opening: Opening) -> LocalBackend:
    """Open a folder as ``save_pretrained`` writes it.

    Raises:
        InputError: something is missing or damaged, the weights do not fit into memory, or it is no causal model.
    """
    check_opening(opening)
    folder = Path(name)
    weights = _weight_files(folder)
    refuse_too_large(name, _count_weights(weights), opening.dtype)
    with quiet(name):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not any((folder / each).is_file() for each in _TOKENIZER_FILES) and not list(folder.glob("*.model")):
        raise InputError(f"{name}: holds no tokenizer", remedy="put its tokenizer.json or tokenizer.model there")
    with quiet(name):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model, report = CAUSAL.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=getattr(torch, opening.dtype),
            output_loading_info=True,
        )
    _refuse_incomplete(name, report)
    if not tokenizer("a 0", add_special_tokens=False)["input_ids"]:
        raise InputError(f"{name}: its tokenizer makes no token of a text", remedy="copy the tokenizer's files again")
    loaded = Loaded(
        kind="transformers",
        name=name,
        model=model,
        tokens=hub_tokens(tokenizer, digest=_tokenizer_hash(folder, tokenizer), end_tokens=_end_tokens(folder, config)),
        content={"weights": files_hash(weights), "config": files_hash([folder / CONFIG])},
    )
    return backend_of(loaded, opening)


def backend_of(loaded: Loaded, opening: Opening) -> LocalBackend:
    """The backend of a model of transformers that is in memory.

    Raises:
        InputError: the device is not there, the model does not fit, a weight is no number, or it is no causal model.
    """
    if opening.threads is not None:
        torch.set_num_threads(opening.threads)
    try:
        model = loaded.model.to(opening.device)
    except RuntimeError as error:
        raise InputError(f"{loaded.name}: cannot be put on {opening.device}: {first_line(error)}") from error
    refuse_not_finite(loaded.name, model.named_parameters())
    context_tokens = _context_tokens(model.config)
    cached = wrap(model, name=loaded.name, context_tokens=context_tokens)
    return LocalBackend(
        identity=identity_of(
            kind=loaded.kind,
            name=loaded.name,
            parameters=sum(each.numel() for each in model.parameters()),
            opening=opening,
            tokens=loaded.tokens,
            context_tokens=context_tokens,
            content=loaded.content,
            versions={library: version(library) for library in ("torch", "transformers", "tokenizers")},
        ),
        tokens=loaded.tokens,
        context_tokens=context_tokens,
        vocabulary=model.get_input_embeddings().weight.shape[0],
        batch_size=opening.batch_size,
        scorer=partial(_score, cached, device=opening.device),
        module=model,
        next_tokens=CachedNext(model=cached, device=opening.device),
    )


def _score(model: CachedTransformer, prepared: PreparedItems, *, batch_size: int, device: str) -> ChoiceScores:
    return staged.score_choices(model, prepared, batch_size=batch_size, device=device)


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """One clear line for whatever transformers raises; no warnings and bars of its own meanwhile.

    Raises:
        InputError: the files cannot be loaded.
    """
    level = _LOGGING.get_verbosity()
    bars = _LOGGING.is_progress_bar_enabled()
    _LOGGING.set_verbosity_error()
    _LOGGING.disable_progress_bar()
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{name}: does not fit into memory") from error
    except _CANNOT_LOAD as error:
        raise InputError(f"{name}: cannot be loaded: {first_line(error)}") from error
    except BaseException as error:
        # What the tokenizers' own language calls a panic has no class that could be imported, and no base but this.
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{name}: its tokenizer cannot be loaded: {first_line(error)}") from error
    finally:
        _LOGGING.set_verbosity(level)
        if bars:
            _LOGGING.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _tokenizer_hash(folder: Path, tokenizer: Any) -> str:
    """Over every file that may decide a token: those the tokenizer names, the usual ones, and all small ones besides.

    A tokenizer may read files that it does not name, so rather too many than one too few.
    """
    named = {str(each) for each in (getattr(tokenizer, "vocab_files_names", None) or {}).values()}
    small = {
        path.name
        for path in folder.iterdir()
        if path.suffix in (".json", ".txt", ".model") and path.is_file() and path.stat().st_size <= _SMALL_BYTES
    }
    names = {*named, *_TOKENIZER_FILES, *small}.difference(_NOT_TOKENIZER)
    return files_hash([folder / each for each in sorted(names) if (folder / each).is_file()])


def _weight_files(folder: Path) -> list[Path]:
    if (folder / "adapter_config.json").is_file():
        raise InputError(f"{folder}: is an adapter, not a whole model", remedy="merge it into its model and save that")
    found = sorted(folder.glob("*.safetensors"))
    if found:
        return found
    remedy = "save it with safe_serialization=True" if list(folder.glob("*.bin")) else "name the folder of a model"
    raise InputError(f"{folder}: holds no safetensors file", remedy=remedy)


def _count_weights(paths: Sequence[Path]) -> int:
    """Numbers in all tensors, from the headers alone."""
    count = 0
    for path in paths:
        try:
            with safe_open(path, framework="pt") as file:
                shapes = [file.get_slice(key).get_shape() for key in file.keys()]  # noqa: SIM118  # not a mapping
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path}: is damaged: {first_line(error)}", remedy="copy the file again") from error
        count += sum(torch.Size(shape).numel() for shape in shapes)
    return count


def _refuse_incomplete(name: str, report: dict[str, Any]) -> None:
    """transformers makes up random numbers for weights that a file lacks, with a warning only."""
    lacking = [*report.get("missing_keys", ()), *(str(each[0]) for each in report.get("mismatched_keys", ()))]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InputError(f"{name}: the weights lack {min(lacking)}{more}", remedy="copy the folder again, whole")


def _end_tokens(folder: Path, config: Any) -> list[int]:
    """What configuration and generation configuration name as the end of a text."""
    found: list[int] = []
    for holder in (config, _generation_config(folder)):
        value = getattr(holder, "eos_token_id", None)
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def _generation_config(folder: Path) -> Any:
    if not (folder / "generation_config.json").is_file():
        return None
    with quiet(str(folder)):
        return GenerationConfig.from_pretrained(folder, local_files_only=True)


def _context_tokens(config: Any) -> int:
    text = config.get_text_config()
    names = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx")
    found = [getattr(text, name, None) for name in names]
    return next((each for each in found if isinstance(each, int) and each > 1), DEFAULT_CONTEXT_TOKENS)
