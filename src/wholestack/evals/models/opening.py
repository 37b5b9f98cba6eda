"""From what a user calls a model to the backend that runs it.

A plain table: what a name looks like, and where its backend is opened. The module of a backend, and with it torch, is
imported only when a name is its own. Installed packages add lines to the table behind the built-in ones, by entry
points of the group :data:`ENTRY_POINTS`; none is imported while a built-in backend takes the name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.backend import Backend, Opening
from wholestack.evals.models.added import AddedBackend
from wholestack.plugins import installed

ENTRY_POINTS = "wholestack.evals_backends"
"""Group of entry points, each a :class:`BackendKind`."""
_EXTRAS = {"torch": "train", "transformers": "hf", "safetensors": "hf", "gguf": "hf"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendKind:
    """One line of the table."""

    says: str
    """What a user may write, for the message that lists what is possible."""
    takes: Callable[[str], bool]
    """Whether a name is of this kind; looks at the name and the disk only."""
    opens: str
    """``module:function`` that opens it: (name, :class:`Opening`) to :class:`Backend`."""


def _has(pattern: str) -> Callable[[str], bool]:
    return lambda name: any(True for _ in Path(name).glob(pattern))


def _is_checkpoint(name: str) -> bool:
    return (
        name.endswith(".pt")
        or any(map(_has("step-*.pt"), (name, f"{name}/checkpoints")))
        or (_has("jobs/*/checkpoints/step-*.pt")(name))
    )


KINDS: tuple[BackendKind, ...] = (
    BackendKind(
        says="smollm2",
        takes=lambda name: name == "smollm2",
        opens="wholestack.evals.models.gguf:open_smollm2",
    ),
    BackendKind(
        says="memory (knows nothing) or memory:FILE (n-grams of its bytes)",
        takes=lambda name: name == "memory" or name.startswith("memory:"),
        opens="wholestack.evals.memory:open_memory",
    ),
    BackendKind(
        says="http(s)://... (an endpoint)",
        takes=lambda name: name.startswith(("http://", "https://")),
        opens="wholestack.evals.models.endpoint:open_endpoint",
    ),
    BackendKind(
        says="FILE.gguf",
        takes=lambda name: name.endswith(".gguf"),
        opens="wholestack.evals.models.gguf:open_gguf",
    ),
    BackendKind(
        says="a checkpoint or run of pretrain",
        takes=_is_checkpoint,
        opens="wholestack.evals.models.pretrained:open_checkpoint",
    ),
    BackendKind(
        says="a Hugging Face folder",
        takes=_has("config.json"),
        opens="wholestack.evals.models.transformers:open_folder",
    ),
)
"""The built-in backends; the first that takes a name opens it."""


def open_backend(name: str, opening: Opening, *, kinds: tuple[BackendKind, ...] = KINDS) -> Backend:
    """Open a model.

    Args:
        name: What the user calls it.
        opening: What the user says about it besides.
        kinds: The table, before what installed packages add.

    Raises:
        InputError: no kind takes the name, a library is missing, or the model cannot be opened.
    """
    kind = next((each for each in kinds if each.takes(name)), None)
    return _open(kind, name, opening) if kind else _open_added(name, opening, kinds)


def _open_added(name: str, opening: Opening, kinds: tuple[BackendKind, ...]) -> Backend:
    """A name that no built-in kind takes; a plug-in that cannot be loaded is in the way only if no other takes it."""
    says, broken = [kind.says for kind in kinds], []
    for plugin in installed(ENTRY_POINTS):
        try:
            kind: BackendKind = plugin.load(BackendKind)
            with plugin.blamed(f"cannot tell whether {name!r} is its own"):
                takes = kind.takes(name)
        except InputError as error:
            broken.append(error.message)
            continue
        if takes:
            with plugin.blamed(f"{name}: cannot be opened"):
                return AddedBackend(_open(kind, name, opening), plugin)
        says.append(f"{kind.says} ({plugin.package})")
    what = f"the folder {name} holds no model" if Path(name).is_dir() else f"there is no model {name!r}"
    raise InputError("; ".join((what, *broken)), remedy=f"a model is one of: {', '.join(says)}")


def _open(kind: BackendKind, name: str, opening: Opening) -> Backend:
    if name.endswith((".gguf", ".pt")) and not Path(name).is_file():
        raise InputError(f"{name}: there is no such file")
    module, function = kind.opens.split(":")
    try:
        opened: Callable[[str, Opening], Backend] = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(missing)
        remedy = f"pip install 'wholestack[{extra}]'" if extra else f"install {missing}"
        raise InputError(f"{name}: needs {error.name}, which is not installed", remedy=remedy) from error
    return opened(name, opening)
