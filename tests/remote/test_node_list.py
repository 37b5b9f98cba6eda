"""Ranges of names, Slurm's and Ansible's."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.remote.node_list import MAX_HOSTS, expand_ansible, expand_slurm


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[1-3]", ["gpu1", "gpu2", "gpu3"]),
        ("gpu[001-003,200],login1", ["gpu001", "gpu002", "gpu003", "gpu200", "login1"]),
        ("gpu[09-11]", ["gpu09", "gpu10", "gpu11"]),
        ("gpu[9-11]", ["gpu9", "gpu10", "gpu11"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("r[1,3]n[7]-ib.example.org", ["r1n7-ib.example.org", "r3n7-ib.example.org"]),
        ("a, b\nc ,,d", ["a", "b", "c", "d"]),
        ("root@gpu[1-2]:2222", ["root@gpu1:2222", "root@gpu2:2222"]),
        ("root@[fe80::1]:22,[::1]", ["root@[fe80::1]:22", "[::1]"]),
        ("[0-1]", ["0", "1"]),
        ("gpu[1-2,2-3]", ["gpu1", "gpu2", "gpu2", "gpu3"]),
        ("", []),
    ],
)
def test_lists_of_slurm(text, names):
    assert expand_slurm(text) == names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpu[1-1000000000]", "1,000,000,000 hosts"),
        ("gpu[1-999999999]", "999,999,999 hosts"),
        ("a[1-999]b[1-999]c[1-999]", "hosts or more"),
        ("a[1-60000],b[1-60000]", "hosts or more"),
        ("gpu[3-1]", "not a range"),
        ("gpu[]", "not a range"),
        ("gpu[a-c]", "not a range"),
        ("gpu[1-2", "not closed"),
        ("gpu1-2]", "do not match"),
        ("gpu[[1-2]]", "do not match"),
        ("gpu[1--2]", "not a range"),
        ("gpu[١-٣]", "not a range"),
    ],
)
def test_lists_that_are_none_are_refused_by_name(text, says):
    with pytest.raises(InputError) as caught:
        expand_slurm(text, where="hosts.toml: kinds.h100.hosts")
    assert says in str(caught.value)
    assert str(caught.value).startswith("hosts.toml: kinds.h100.hosts: ")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("web", ["web"]),
        ("www[01:03].example.com", ["www01.example.com", "www02.example.com", "www03.example.com"]),
        ("db-[a:c]", ["db-a", "db-b", "db-c"]),
        ("n[1:9:4]", ["n1", "n5", "n9"]),
        ("r[1:2]n[1:2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("[2001:db8::1]:22", ["[2001:db8::1]:22"]),
        ("[1:2:0]", ["[1:2:0]"]),  # may be an address: that is judged where hosts are parsed
    ],
)
def test_patterns_of_ansible(text, names):
    assert expand_ansible(text) == names


@pytest.mark.parametrize("text", ["n[1:999999999]", "n[1-3]", "n[]"])
def test_patterns_that_are_none_are_refused(text):
    with pytest.raises(InputError, match=r"range|hosts"):
        expand_ansible(text)


@given(st.integers(0, 9999), st.integers(0, 200), st.integers(1, 6))
def test_a_range_has_all_its_numbers_in_their_width(first, more, width):
    text = f"{first:0{width}d}"
    names = expand_slurm(f"n[{text}-{first + more}]")
    assert [int(name[1:]) for name in names] == list(range(first, first + more + 1))
    assert all(len(name[1:]) == max(len(str(int(name[1:]))), len(text) if text[0] == "0" else 0) for name in names)


@given(st.text(alphabet="ab[]0123456789-,: @", max_size=30))
def test_any_text_is_expanded_or_refused(text):
    for expand in (expand_slurm, expand_ansible):
        try:
            names = expand(text)
        except InputError:
            continue
        assert len(names) <= MAX_HOSTS


@pytest.mark.skipif(shutil.which("scontrol") is None, reason="Slurm is not installed")
@pytest.mark.parametrize("text", ["gpu[001-003,200],login1", "r[1-2]n[01-04]", "gpu[9-11]", "gpu[09-11]"])
def test_slurm_expands_the_same(text, tmp_path):
    config = tmp_path / "slurm.conf"
    config.write_text("ClusterName=c\nSlurmctldHost=localhost\n")
    done = subprocess.run(
        ["scontrol", "show", "hostnames", text],
        env=os.environ | {"SLURM_CONF": str(config)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert expand_slurm(text) == done.stdout.split()
