"""Which licence a text states: by its SPDX line, or by a sentence that only that licence has.

This recognises; it does not give legal advice. What cannot be recognised is ``None`` and the document is refused,
for a guess in a ledger is worse than a gap. Identifiers are those of the SPDX licence list.
"""

import re
from pathlib import Path

UNSTATED = frozenset({"", "none", "unknown", "n/a", "na", "null", "noassertion", "other", "tbd", "?", "-"})
"""Answers to "which licence?" that are no answer."""

LICENCE_FILES = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE")
"""Names of licence files, before any extension."""
_EXTENSIONS = frozenset({"", ".txt", ".md", ".rst"})
_LARGEST_LICENCE_BYTES = 200_000

_SPDX = re.compile(r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+\-]+(?:[ \t]+(?:AND|OR|WITH)[ \t]+[A-Za-z0-9.+\-]+)*)")

_BSD = "redistribution and use in source and binary forms"
_KNOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("PSF-2.0", ("python software foundation license version 2",)),
    ("Apache-2.0", ("apache license", "version 2.0")),
    ("AGPL-3.0-only", ("gnu affero general public license", "version 3, 19 november 2007")),
    ("LGPL-3.0-only", ("gnu lesser general public license", "version 3, 29 june 2007")),
    ("LGPL-2.1-only", ("gnu lesser general public license", "version 2.1, february 1999")),
    ("GPL-3.0-only", ("gnu general public license", "version 3, 29 june 2007")),
    ("GPL-2.0-only", ("gnu general public license", "version 2, june 1991")),
    ("MPL-2.0", ("mozilla public license version 2.0",)),
    ("MPL-2.0", ("mozilla public license, version 2.0",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("CC-BY-SA-4.0", ("creative commons attribution-sharealike 4.0 international",)),
    ("CC-BY-4.0", ("creative commons attribution 4.0 international",)),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    ("BSL-1.0", ("boost software license - version 1.0",)),
    ("BSD-3-Clause", (_BSD, "endorse or promote products derived")),
    ("BSD-2-Clause", (_BSD, "retain the above copyright notice", "in binary form must reproduce")),
    ("MIT", ("permission is hereby granted, free of charge", "the software is provided")),
    ("MIT", ("licensed under the mit license",)),
    ("0BSD", ("permission to use, copy, modify, and/or distribute this software for any purpose with or without fee",)),
    ("ISC", ("permission to use, copy, modify, and/or distribute", "provided that the above copyright notice")),
    ("CNRI-Python", ("cnri's python 1.6 license",)),
    ("HPND", ("permission to use, copy, modify, and distribute this", "advertising or publicity")),
)
"""Identifier and the phrases that must all occur, most particular first."""

_NOTICE = re.compile(
    r"permission is hereby granted|permission to use, copy|redistribution and use in source|licen[cs]ed under"
    r"|redistributed under|SPDX-License-Identifier",
    re.IGNORECASE,
)


def is_stated(licence: object) -> bool:
    """Whether a value from foreign data names a licence at all."""
    return isinstance(licence, str) and licence.strip().lower() not in UNSTATED


def identify(text: str) -> str | None:
    """SPDX identifier of the licence that a text states, or ``None``."""
    spdx = _SPDX.search(text)
    if spdx and is_stated(spdx[1]):
        return " ".join(spdx[1].split())
    plain = " ".join(re.sub(r"[#*/\"]", " ", text).lower().split())
    for identifier, phrases in _KNOWN:
        if all(phrase in plain for phrase in phrases):
            return identifier
    return None


def spdx_line(text: str, *, characters: int = 2000) -> str | None:
    """The identifier from an SPDX line near the top of a file, or ``None``."""
    found = _SPDX.search(text, 0, characters)
    return " ".join(found[1].split()) if found else None


def own_notice(text: str, *, characters: int = 6000) -> str | None:
    """What a single file says near its top beyond the licence of the collection it lies in.

    A bare copyright line ("all rights reserved") grants nothing and is no notice.

    Returns:
        An SPDX identifier, ``LicenseRef-notice-in-file`` for a notice that is not recognised, or ``None`` where
        there is none.
    """
    head = text[:characters]
    if not _NOTICE.search(head):
        return None
    return identify(head) or "LicenseRef-notice-in-file"


def licence_file(folder: Path) -> Path | None:
    """The licence file that lies in a folder, first by name, or ``None``."""
    named = [path for path in folder.iterdir() if _is_licence_name(path) and path.is_file()]
    return min(named, default=None)


def identify_file(path: Path) -> str | None:
    """Licence that a licence file states, or ``None`` if it is not readable as one."""
    try:
        data = path.read_bytes()[:_LARGEST_LICENCE_BYTES]
    except OSError:
        return None
    return identify(data.decode(errors="replace"))


def _is_licence_name(path: Path) -> bool:
    stem = path.name.upper().split(".")[0]
    return path.suffix.lower() in _EXTENSIONS and any(
        stem == known or stem.startswith((f"{known}-", f"{known}_")) for known in LICENCE_FILES
    )
