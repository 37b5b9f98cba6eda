"""What every progress on a terminal does alike: a live picture while the work runs, gone when it ends."""

from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.live import Live


class LiveWatcher:
    """A console, and on it, if it is a terminal, a picture that lives; use as a context manager.

    Args:
        stream: Where to draw.
        picture: Gives what is drawn, several times a second; without it, what :meth:`_draw` was last given.
    """

    def __init__(self, stream: TextIO, picture: Callable[[], RenderableType] | None = None) -> None:
        self._console = Console(file=stream, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True, get_renderable=picture)

    def _draw(self, picture: RenderableType) -> None:
        self._live.update(picture)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
