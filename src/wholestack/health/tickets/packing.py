"""Write a ticket: a folder, or a .tar.gz; the same ticket gives the same bytes."""

import gzip
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wholestack.errors import InputError
from wholestack.health.tickets.page import page
from wholestack.health.tickets.ticket import Ticket
from wholestack.journal import write_atomic
from wholestack.record import to_json

PAGE, DATA, LOG = "ticket.md", "ticket.json", "log.txt"


def files_of(ticket: Ticket) -> Mapping[str, bytes]:
    """The files of the pack by name."""
    files = {PAGE: page(ticket).encode(), DATA: to_json(ticket, indent=2)}
    if ticket.log_lines:
        files[LOG] = "".join(f"{line}\n" for line in ticket.log_lines).encode()
    return files


def write_pack(ticket: Ticket, out: Path) -> None:
    """Write it under a name, at once or not at all.

    Args:
        ticket: Of :func:`~wholestack.health.tickets.gathering.ticket_for`.
        out: A folder that is not there yet, or a file that ends in ``.tar.gz``.

    Raises:
        InputError: something else is there, or it cannot be written; the same pack again is no error.
        RunDirectoryError: the archive cannot be written.
    """
    is_archive = out.name.endswith(".tar.gz")
    try:
        if out.exists():
            if _is_same(ticket, out, is_archive=is_archive):
                return
            raise InputError(f"{out}: is there already and is another", remedy="name another one with --out")
        out.parent.mkdir(parents=True, exist_ok=True)
        if is_archive:
            write_atomic(out, archive(ticket))
        else:
            _write_folder(out, files_of(ticket))
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}", remedy="name a place that can be written with --out") from error


def archive(ticket: Ticket) -> bytes:
    """The pack as .tar.gz: no name, owner or time in it is of this machine."""
    packed = io.BytesIO()
    folder = f"ticket-{ticket.finding}"
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, content in sorted(files_of(ticket).items()):
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size, info.mode, info.mtime = len(content), 0o644, max(0, int(ticket.at))
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def _is_same(ticket: Ticket, out: Path, *, is_archive: bool) -> bool:
    if is_archive:
        return out.is_file() and out.read_bytes() == archive(ticket)
    files = files_of(ticket)
    return out.is_dir() and sorted(os.listdir(out)) == sorted(files) and all(
        (out / name).read_bytes() == content for name, content in files.items()
    )  # fmt: skip


def _write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    made = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        for name, content in files.items():
            (made / name).write_bytes(content)
        made.chmod(0o755)
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
