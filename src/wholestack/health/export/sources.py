"""The sources of one exporter, read again when their files change; what cannot be read now tells nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import WholestackError
from wholestack.health.export.exposition import Samples, render
from wholestack.health.export.metrics import samples_of
from wholestack.health.export.told import (
    SourceName,
    Told,
    from_history,
    from_sweep,
    history_files,
    newest_sweep,
    sweep_files,
)

Marks = tuple[tuple[str, int, int, int], ...]


@dataclass(slots=True)
class _Source:
    find: Callable[[], Path]
    files: Callable[[Path], Sequence[Path]]
    read: Callable[[Path], Told]
    marks: Marks = ()
    told: Told | None = None
    problem: str = ""


class Exporter:
    """What is exported of a sweep, a history, or both.

    Args:
        sweeps: Folder of a sweep, or of sweeps, of which the newest counts.
        history: File of a history.
        clock: Seconds since the epoch.
        log: Told in one line why a source cannot be read, once until that changes, and that it can be read again.
        stale_after_s: The stated time of all hosts; ``None``: as often as they are asked says
            (:class:`~wholestack.health.history.spans.Timeline`), of one sweep alone a day.
    """

    def __init__(
        self,
        *,
        sweeps: Path | None,
        history: Path | None,
        clock: Callable[[], float],
        log: Callable[[str], None],
        stale_after_s: float | None = None,
    ) -> None:
        self._clock = clock
        self._log = log
        self._stale_after_s = stale_after_s
        self._sources: dict[SourceName, _Source] = {}
        if sweeps is not None:
            self._sources["sweep"] = _Source(lambda: newest_sweep(sweeps), sweep_files, from_sweep)
        if history is not None:
            self._sources["history"] = _Source(
                lambda: history, history_files, lambda path: from_history(path, now=clock())
            )

    def samples(self) -> Samples:
        """All samples of now."""
        told = self.told()
        return samples_of(told, now=self._clock(), stale_after_s=self._stale_after_s)

    def text(self) -> bytes:
        """The same as Prometheus reads it."""
        return render(self.samples())

    def told(self) -> Mapping[SourceName, Told | None]:
        """What each source tells now; ``None`` where it cannot be read."""
        return {name: self._tell(name, source) for name, source in self._sources.items()}

    @property
    def problems(self) -> Mapping[SourceName, str]:
        """Why sources could not be read when they were last."""
        return {name: source.problem for name, source in self._sources.items() if source.problem}

    def _tell(self, name: SourceName, source: _Source) -> Told | None:
        problem = ""
        try:
            path = source.find()
            # Taken before reading: what is written meanwhile is read the next time.
            marks = tuple(map(_mark, source.files(path)))
            if source.told is None or marks != source.marks:
                source.told, source.marks = None, marks
                source.told = source.read(path)
        except (WholestackError, OSError) as error:
            source.told, problem = None, str(error)
        if problem != source.problem:
            self._log(f"{name}: {problem or 'can be read again'}")
            source.problem = problem
        return source.told


def _mark(path: Path) -> tuple[str, int, int, int]:
    """Changes when the file does, or when it is another."""
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns
