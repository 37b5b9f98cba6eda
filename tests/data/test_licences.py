import sysconfig
from pathlib import Path

import pytest

from wholestack.data.licences import identify, identify_file, is_licence_name, is_stated, licence_file, own_notice

MIT = """MIT License

Copyright (c) 2020 A. Author

Permission is hereby granted, free of charge, to any person obtaining a copy of this software ...
THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND ...
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MIT, "MIT"),
        ("# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n", "Apache-2.0 WITH LLVM-exception"),
        ("// SPDX-License-Identifier: MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("                Apache License\n          Version 2.0, January 2004\n", "Apache-2.0"),
        ("GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007", "GPL-3.0-only"),
        (
            "GNU LESSER GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007\n ... GNU General Public License",
            "LGPL-3.0-only",
        ),
        ("Creative Commons Attribution 4.0 International", "CC-BY-4.0"),
        ("Redistribution and use in source and binary forms ... endorse or promote products derived", "BSD-3-Clause"),
        ("All rights reserved. Do not copy.", None),
        ("SPDX-License-Identifier: NOASSERTION", None),
        ("The rain in Spain", None),
        ("", None),
    ],
)
def test_a_licence_is_known_by_its_own_words_or_not_at_all(text, expected):
    assert identify(text) == expected


def test_pythons_own_licence_is_recognised():
    path = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if not path.is_file():
        pytest.skip("this Python came without its licence file")
    assert identify_file(path) == "PSF-2.0"


@pytest.mark.parametrize("value", [None, 5, "", "  ", "Unknown", "NOASSERTION", "x" * 300, ["MIT"]])
def test_no_answer_is_not_a_licence(value):
    assert not is_stated(value)


@pytest.mark.parametrize("name", ["LICENSE", "licence.txt", "COPYING.md", "LICENSE-MIT"])
def test_a_licence_file_is_known_by_its_name(name):
    assert is_licence_name(name)


@pytest.mark.parametrize("name", ["license.py", "licenses.txt", "notes.txt", "LICENSE.txt.py"])
def test_other_files_are_none(name):
    assert not is_licence_name(name)


def test_a_link_is_no_licence_file(tmp_path):
    (tmp_path / "elsewhere").write_text(MIT)
    (tmp_path / "LICENSE").symlink_to(tmp_path / "elsewhere")
    assert licence_file(tmp_path) is None


def test_a_notice_in_a_file_is_noticed_and_a_copyright_line_is_none():
    assert own_notice("# Copyright 2001 Somebody. All rights reserved.\nimport os\n") is None
    assert own_notice("# Licensed to PSF under a Contributor Agreement.\n") is None
    assert own_notice(f"'''{MIT}'''") == "MIT"
    assert own_notice("# Permission to use, copy it is granted to friends\n") == "LicenseRef-notice-in-file"
    assert own_notice("x = 1\n" * 2000 + MIT) is None
