"""Axes to inline SVG: the one module that imports matplotlib.

One point is one CSS pixel. Every picture is a Figure of its own on the SVG back end, without pyplot, so nothing is
shared between pictures; settings are in force only while one is drawn. Colours are the names of the style sheet
(:data:`wholestack.report.style.COLOURS`): while drawing each stands as a colour that nothing else uses, and in the
finished SVG as ``var(--name)``. Text stays text, never mathematics, and comes in the page's own font.
"""

import io
import itertools
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from wholestack.report.page import Markup
from wholestack.report.quantities import printable, short
from wholestack.report.style import COLOURS

__all__ = [
    "Axes",
    "legend",
    "log_axis",
    "logit_axis",
    "no_ticks",
    "paint",
    "picture",
    "text",
    "whole_ticks",
]

Painter = Callable[[Axes], None]

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "wholestack",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 11.0,
    "axes.unicode_minus": False,
    "path.simplify": True,
    "path.simplify_threshold": 0.4,
}
_FONT = re.compile(r"font: ([^;]*?)([\d.]+)px [^;]*")


def paint(name: str) -> str:
    """The colour that stands for a name of the style sheet while drawing."""
    return f"#fe00{COLOURS.index(name):02x}"


def picture(
    painter: Painter, *, name: str, label: str, width: int = 700, height: int = 340, small: bool = False
) -> Markup:
    """Draw one picture.

    Args:
        painter: Draws on the axes that it is given.
        name: Short and unique on the page; prefixes the ids inside the picture.
        label: What the picture shows, for those who cannot see it.
        width: Width in CSS pixels at full size.
        height: Height in CSS pixels at full size.
        small: Whether it may shrink with a narrow screen instead of scrolling.
    """
    with rc_context(_SETTINGS), warnings.catch_warnings():
        # The font here only measures; the browser has its own for letters that this one lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        _plain(axes)
        painter(axes)
        _margins(figure, axes, width, height)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(drawn.getvalue(), name=name, label=label, class_="small" if small else "")


def text(value: str, limit: int = 60) -> str:
    """Text of a run directory for use inside a picture."""
    return printable(value, limit=limit)


def log_axis(axes: Axes, which: str, *, minor: bool = True) -> None:
    """Make an axis logarithmic with ticks written as ``1e11``; ``minor`` says whether there are small ticks between."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    low, high = sorted(axis.get_data_interval())
    axis.set_major_locator(LogLocator(subs=_steps(high / low if low > 0 else 1e9), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
    if not minor:
        axis.set_minor_locator(NullLocator())


def _steps(ratio: float) -> tuple[float, ...]:
    """Multiples of a power of ten that carry a tick, for an axis whose ends have this ratio."""
    if ratio < 10:
        return 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0
    return (1.0, 2.0, 5.0) if ratio < 60 else (1.0,)


def logit_axis(axes: Axes, which: str) -> None:
    """Make an axis logit with plain ticks."""
    getattr(axes, f"set_{which}scale")("logit")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_locator(NullLocator())


def whole_ticks(axes: Axes, which: str) -> None:
    """Ticks at whole numbers only."""
    getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(nbins=6, integer=True))


def no_ticks(axes: Axes, which: str) -> None:
    """Leave an axis without ticks."""
    getattr(axes, f"{which}axis").set_major_locator(NullLocator())


def legend(axes: Axes, columns: int = 4) -> None:
    """The key, in rows above the axes; none where nothing has a label."""
    if not axes.get_legend_handles_labels()[0]:
        return
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.0,
        fontsize=10.5,
        labelcolor=paint("ink"),
        handlelength=1.9,
        handletextpad=0.5,
        columnspacing=1.4,
        labelspacing=0.35,
    )


def _plain(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.grid(True, color=paint("grid"), linewidth=1)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(paint("muted"))
        spine.set_linewidth(0.8)
    axes.tick_params(which="both", color=paint("muted"), labelcolor=paint("muted"), labelsize=10.5, length=3, width=0.8)
    axes.xaxis.label.set_color(paint("ink"))
    axes.yaxis.label.set_color(paint("ink"))
    axes.title.set_color(paint("ink"))


def _margins(figure: Figure, axes: Axes, width: int, height: int) -> None:
    """Room for labels, measured as the picture will be drawn."""
    figure.subplots_adjust(left=0.1, right=0.97, top=0.9, bottom=0.15)
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    around = axes.get_tightbbox(renderer)
    inner = axes.get_window_extent(renderer)
    if around is None:
        return
    figure.subplots_adjust(
        left=min(0.4, (inner.x0 - around.x0 + 4) / width),
        right=max(0.5, 1 - max(8.0, around.x1 - inner.x1 + 4) / width),
        bottom=min(0.5, (inner.y0 - around.y0 + 4) / height),
        top=max(0.4, 1 - (around.y1 - inner.y1 + 4) / height),
    )


def _inline(svg: bytes, *, name: str, label: str, class_: str) -> Markup:
    """Strip what only a file of its own needs, and make ids unique on the page."""
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in {"metadata", "style"}:
                parent.remove(child)
    _rename(root, name)
    for node in root.iter():
        node.tag = _tag(node)
        node.attrib = {key.rpartition("}")[2]: _themed(value) for key, value in node.attrib.items()}
    box = root.attrib["viewBox"]
    root.attrib = {
        "viewBox": box,
        "role": "img",
        "aria-label": printable(label),
        **({"class": class_} if class_ else {}),
    }
    return Markup(ET.tostring(root, encoding="unicode"))


def _tag(node: ET.Element) -> str:
    return str(node.tag).rpartition("}")[2]


def _rename(root: ET.Element, name: str) -> None:
    """Keep only ids that something refers to, with the picture's name in front."""
    everything = itertools.chain.from_iterable(node.attrib.values() for node in root.iter())
    wanted = {found for value in everything for found in re.findall(r"(?:^|url\()#([\w-]+)", value)}
    for node in root.iter():
        if node.attrib.get("id") not in wanted:
            node.attrib.pop("id", None)
        else:
            node.attrib["id"] = f"{name}-{node.attrib['id']}"
        for key, value in node.attrib.items():
            if "#" in value and key != "id":
                node.attrib[key] = re.sub(
                    r"(^|url\()#([\w-]+)",
                    lambda found: f"{found[1]}#{name}-{found[2]}" if found[2] in wanted else found[0],
                    value,
                )


def _themed(value: str) -> str:
    if "#fe00" in value:
        value = re.sub(r"#fe00([0-9a-f]{2})", lambda found: f"var(--{COLOURS[int(found[1], 16)]})", value)
    return _FONT.sub(r"font-size: \2px", value)
