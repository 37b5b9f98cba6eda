"""EDAC: what each memory module counted in corrected and uncorrected errors.

Source: Documentation/admin-guide/ras.rst of the Linux kernel. Drivers without a folder a module (``dimm0`` or, in newer
kernels, ``rank0``) have only ``csrow`` folders; then those are the parts.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from wholestack.health.formats.sysfs import number, read_tree
from wholestack.health.probe import NotThereError


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One memory module, or a controller's whole where it has none."""

    key: str
    """Its label, else its place in the tree (``mc0/dimm3``)."""
    location: str
    corrected: int | None
    """``None`` if it is not a number."""
    uncorrected: int | None
    lines: tuple[str, ...]


def looks_like_edac(text: str) -> bool:
    """Paths begin with a memory controller, alone or in full."""
    return re.search(r"(?:^|/)mc\d+/", text[:2000], re.MULTILINE) is not None


def read_edac(text: str) -> list[Module]:
    """Every module; controllers only where they count more than their modules do.

    Raises:
        NotThereError: the tree holds no counter.
    """
    tree = {re.sub(r"^.*/(?=mc\d+/)", "", path): value for path, value in read_tree(text).items()}
    places = _places(tree)
    labels = Counter(tree.get(f"{place}/dimm_label", "").strip() for place in places)
    modules = [_module(tree, place, labels) for place in places]
    controllers = dict.fromkeys(path.partition("/")[0] for path in tree)
    rest = [whole for name in controllers if (whole := _remainder(tree, name, modules)) is not None]
    if not modules and not rest:
        raise NotThereError("not_supported", "the kernel counts no memory errors")
    return modules + rest


def _places(tree: dict[str, str]) -> list[str]:
    """Folders of modules; rows only of a controller that has no folder a module (kernels show both)."""
    found = dict.fromkeys(match[1] for path in tree if (match := re.match(r"(mc\d+/(?:dimm|rank|csrow)\d+)/", path)))
    finer = {place.partition("/")[0] for place in found if "/csrow" not in place}
    return [place for place in found if "/csrow" not in place or place.partition("/")[0] not in finer]


def _module(tree: dict[str, str], place: str, labels: Mapping[str, int]) -> Module:
    own = "dimm_" if f"{place}/dimm_ce_count" in tree or f"{place}/dimm_ue_count" in tree else ""
    paths = (f"{place}/{own}ce_count", f"{place}/{own}ue_count")
    label = tree.get(f"{place}/dimm_label", "").strip()
    return Module(
        key=label if labels[label] == 1 and label else f"{place} {label}".strip(),
        location=f"{place} {tree.get(f'{place}/dimm_location', '')}".strip(),
        corrected=number(tree.get(paths[0])),
        uncorrected=number(tree.get(paths[1])),
        lines=tuple(f"{path}:{tree.get(path, 'missing')}" for path in paths) + ((f"label {label}",) if label else ()),
    )


def _remainder(tree: dict[str, str], controller: str, modules: list[Module]) -> Module | None:
    """The controller itself if it has no modules, or counted errors that no module did (place unknown)."""
    mine = [module for module in modules if module.location.startswith(f"{controller}/")]
    paths = (f"{controller}/ce_count", f"{controller}/ue_count")
    if not any(path in tree for path in paths):
        return None
    corrected, uncorrected = (number(tree.get(path)) for path in paths)
    if mine and corrected is not None and uncorrected is not None:
        corrected -= sum(module.corrected or 0 for module in mine)
        uncorrected -= sum(module.uncorrected or 0 for module in mine)
        if corrected <= 0 and uncorrected <= 0:
            return None
    return Module(
        key=controller,
        location=tree.get(f"{controller}/mc_name", ""),
        corrected=corrected if corrected is None else max(corrected, 0),
        uncorrected=uncorrected if uncorrected is None else max(uncorrected, 0),
        lines=tuple(f"{path}:{tree.get(path, 'missing')}" for path in paths),
    )
