"""A package as pip leaves it behind: modules beside a ``.dist-info`` folder that names its entry points."""

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, package: str, version: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """Write the metadata of a package whose modules lie in a folder on ``sys.path``."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    groups = (
        "\n".join((f"[{group}]", *(f"{name} = {where}" for name, where in entries.items()), ""))
        for group, entries in entry_points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))
