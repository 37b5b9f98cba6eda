import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.names import fold


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["login"], "login"),
        (["gpu7"], "gpu7"),
        (["gpu001", "gpu002", "gpu003", "gpu004", "gpu007"], "gpu[001-004,007]"),
        (["gpu1", "gpu10", "gpu2"], "gpu[1-2],gpu10"),
        (["n1.dc1", "n2.dc1"], "n[1-2].dc1"),
        (["rack1-gpu1-ib", "rack1-gpu2-ib", "rack2-gpu1-ib"], "rack1-gpu[1-2]-ib,rack2-gpu1-ib"),
        (["10.0.0.1", "10.0.0.2", "fe80::1"], "10.0.0.1,10.0.0.2,fe80::1"),
    ],
)
def test_names_fold_as_slurm_writes_them(names, folded):
    assert fold(names) == folded


def unfold(folded):
    found = []
    for group in re.findall(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)?", folded):
        if not group:
            continue
        inside = re.fullmatch(r"(.*)\[(.*)\](.*)", group)
        if inside is None:
            found.append(group)
            continue
        for span in inside[2].split(","):
            low, _, high = span.partition("-")
            found += [f"{inside[1]}{n:0{len(low)}d}{inside[3]}" for n in range(int(low), int(high or low) + 1)]
    return found


@given(st.sets(st.from_regex(r"[a-z]{1,3}[0-9]{1,3}(-[a-z])?(\.dc1)?", fullmatch=True), min_size=1, max_size=40))
def test_what_was_folded_can_be_written_out_again(names):
    assert sorted(unfold(fold(names))) == sorted(names)
