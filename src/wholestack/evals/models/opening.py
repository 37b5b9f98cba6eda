"""Open a model by name."""

from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.backend import Backend, Opening
from wholestack.evals.memory import MemoryBackend


def open_backend(name: str, opening: Opening) -> Backend:
    """The model that a user named: ``memory`` knows nothing, ``memory:FILE`` has counted the bytes of a file.

    Raises:
        InputError: there is no such model, or its file cannot be read.
    """
    if name.startswith(("http://", "https://")):
        from wholestack.evals.models.endpoint import open_endpoint

        return open_endpoint(name, opening)
    kind, _, file = name.partition(":")
    if kind != "memory":
        raise InputError(f"no model {name!r}", remedy="name memory or memory:FILE")
    try:
        return MemoryBackend(Path(file).read_bytes() if file else b"", name=name)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}", remedy="name an existing file") from error
