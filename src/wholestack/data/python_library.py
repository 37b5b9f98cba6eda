"""The text that is on every machine with Python: the standard library's code, and its English prose.

Two sources share one reading of the library. *Code* is every module, without its longer docstrings. *Prose* is
those docstrings, one document a module, and the chapters of the language reference that ``help()`` shows
(``pydoc_data.topics``). Both documents of a module carry its path as their group, so a split keeps them together;
a docstring that several modules share is kept once, and joins them.

Left out, each by name in the refusals: test packages (most systems do not install them, and they would be two
thirds of all text), what lies in ``site-packages`` (not Python's licence), and tables that a program generated.
"""

import ast
import builtins
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wholestack.data.docstrings import cut
from wholestack.data.folder import read_text, walk
from wholestack.data.licences import own_notice
from wholestack.data.screen import verdict
from wholestack.data.source import Reason, Refusal, SourceDocument
from wholestack.errors import InputError

CODE = "python-code"
PROSE = "python-prose"
PSF = "PSF-2.0"
TOPICS = "pydoc_data/topics.py"

_NOT_LIBRARY = frozenset({"site-packages", "dist-packages"})
_TESTS = frozenset({"test", "tests", "idle_test"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """One module, in two parts, or why it is not taken."""

    path: str
    groups: tuple[str, ...] = ()
    licence: str = PSF
    code: str = ""
    prose: str = ""
    shared_with: tuple[str, ...] = ()
    """For each docstring that an earlier module has too, that module."""
    refused: tuple[Reason, str] | None = None


class PythonLibrary:
    """One reading of a standard library, shared by its two sources; holds its text (about 12 MB) in memory.

    Args:
        root: The folder with the modules; by default that of the running Python.

    Raises:
        InputError: no library lies there.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(sysconfig.get_path("stdlib"))
        if not (self.root / "os.py").is_file():
            raise InputError(f"{self.root}: not a Python standard library (no os.py)", remedy="name its Lib folder")
        self._modules: list[_Module] | None = None

    @property
    def licence(self) -> str:
        """Which licence, and where it was read."""
        name, data = _licence_text(self.root)
        read = f"read from {name}, SHA-256 {hashlib.sha256(data).hexdigest()[:16]}"
        return f"{PSF} (Python Software Foundation License Version 2), {read}"

    def modules(self) -> list[_Module]:
        """All modules in the order of their paths, read at the first call."""
        if self._modules is None:
            self._modules = list(self._read())
        return self._modules

    def topics(self) -> Iterator[SourceDocument]:
        """The chapters of the language reference, one document each."""
        path = self.root / TOPICS
        if not path.is_file():
            return
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign):
                for name, text in sorted(ast.literal_eval(statement.value).items()):
                    yield SourceDocument(path=f"{TOPICS}#{name}", text=text.strip() + "\n", licence=PSF)

    def _read(self) -> Iterator[_Module]:
        first_module_of: dict[str, str] = {}
        for path in walk(self.root, skip=_NOT_LIBRARY):
            name = path.relative_to(self.root).as_posix()
            if path.suffix == ".py" and name != TOPICS:
                yield self._module(path, name, first_module_of)

    def _module(self, path: Path, name: str, first_module_of: dict[str, str]) -> _Module:
        if _TESTS & set(Path(name).parts[:-1]):
            return _Module(path=name, refused=("left_out", "a test package"))
        text = read_text(path)
        if not isinstance(text, str):
            return _Module(path=name, refused=text)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        junk = verdict(text, text.encode())
        if junk:
            return _Module(path=name, refused=junk)
        try:
            parts = cut(text)
        except (SyntaxError, ValueError) as error:
            return _Module(path=name, refused=("malformed", f"does not parse: {error}"))
        owners = [first_module_of.setdefault(each, name) for each in parts.docstrings]
        own = dict.fromkeys(each for each, owner in zip(parts.docstrings, owners, strict=True) if owner == name)
        notice = own_notice(text)
        return _Module(
            path=name,
            groups=tuple(f"python:{each}" for each in dict.fromkeys([name, *owners])),
            licence=f"{PSF} AND {notice}" if notice not in (None, PSF) else PSF,
            code=parts.code,
            prose="".join(f"{each}\n\n" for each in own),
            shared_with=tuple(owner for owner in owners if owner != name),
        )


@dataclass(frozen=True, slots=True)
class PythonCode:
    """Source: the modules of the standard library, their longer docstrings cut out."""

    library: PythonLibrary

    @property
    def name(self) -> str:
        """``python-code``."""
        return CODE

    @property
    def licence(self) -> str:
        """Which licence, and where it was read."""
        return self.library.licence

    def documents(self) -> Iterator[SourceDocument | Refusal]:
        """One document a module."""
        for each in self.library.modules():
            if each.refused:
                yield Refusal(source=CODE, path=each.path, reason=each.refused[0], detail=each.refused[1])
            else:
                yield SourceDocument(path=each.path, text=each.code, licence=each.licence, groups=each.groups)


@dataclass(frozen=True, slots=True)
class PythonProse:
    """Source: the chapters of the language reference, and the longer docstrings, one document a module."""

    library: PythonLibrary

    @property
    def name(self) -> str:
        """``python-prose``."""
        return PROSE

    @property
    def licence(self) -> str:
        """Which licence, and where it was read."""
        return self.library.licence

    def documents(self) -> Iterator[SourceDocument | Refusal]:
        """Chapters first, then docstrings in the order of the modules."""
        yield from self.library.topics()
        for each in self.library.modules():
            for owner in each.shared_with:
                detail = f"a docstring that {owner} has too"
                yield Refusal(source=PROSE, path=f"{each.path}#docstrings", reason="duplicate", detail=detail)
            if each.prose:
                yield SourceDocument(
                    path=f"{each.path}#docstrings", text=each.prose, licence=each.licence, groups=each.groups
                )


def python_sources(root: Path | None = None) -> tuple[PythonCode, PythonProse]:
    """Code and prose of a standard library, by default the one that is running."""
    library = PythonLibrary(root)
    return PythonCode(library), PythonProse(library)


def _licence_text(root: Path) -> tuple[str, bytes]:
    """The licence that came with the library, and its place as a name that is the same on every machine."""
    for place, path in (("", root), ("prefix/", Path(sys.base_prefix))):
        for name in ("LICENSE.txt", "LICENSE"):
            if (path / name).is_file():
                return f"{place}{name} of the Python installation", (path / name).read_bytes()
    printed = str(getattr(builtins, "license", "")) or sys.copyright
    return "what the interpreter itself says (it came without a LICENSE.txt)", printed.encode()
