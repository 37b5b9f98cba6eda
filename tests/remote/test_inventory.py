"""hosts.toml, files by suffix, and names on the command line."""

from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.remote.host import Host
from wholestack.remote.inventory import find_hosts, read_inventory, read_names, read_toml

TOML = """
[defaults]
user = "root"
jump = "admin@login1"

[kinds.h100]
hosts = ["gpu[001-003]", "r[1-2]n1"]
port = 2222

[kinds.a100]
hosts = ["trainer@old1:22", "gpu004"]
jump = "old-login"

[[hosts]]
name = "gpu002"
address = "10.0.0.2"
identity = "~/.ssh/special"

[[hosts]]
name = "login1"
kind = "login"
"""


def test_a_hosts_file_is_read():
    h100 = {"kind": "h100", "user": "root", "port": 2222, "jump": "admin@login1"}
    assert read_toml(TOML, where="hosts.toml") == (
        Host(name="gpu001", **h100),
        Host(name="gpu002", address="10.0.0.2", identity="~/.ssh/special", **h100),
        Host(name="gpu003", **h100),
        Host(name="r1n1", **h100),
        Host(name="r2n1", **h100),
        Host(name="old1", user="trainer", port=22, jump="old-login", kind="a100"),
        Host(name="gpu004", user="root", jump="old-login", kind="a100"),
        Host(name="login1", kind="login", user="root", jump="admin@login1"),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = ", "Invalid value"),
        ("[default]\n", "unknown key 'default'"),
        ("[defaults]\nuser = 3\n", "defaults.user is 3"),
        ('[[hosts]]\nname = "a"\nbmc = ["geheim"]\n', "bmc is a list, must be text"),
        ("[defaults]\nport = 0\n", "defaults.port is 0"),
        ("[defaults]\nport = true\n", "defaults.port is True"),
        ("[defaults]\nuser = ''\n", "defaults.user is empty"),
        ("[defaults]\njump = 'a b'\n", "defaults.jump"),
        ("[defaults]\nname = 'a'\n", "unknown key 'name'"),
        ("[kinds]\nh100 = ['a']\n", "kinds.h100 must be a table"),
        ("[kinds.h100]\nhosts = 'a'\n", "kinds.h100.hosts must be a list"),
        ("[kinds.h100]\nhosts = [1]\n", "kinds.h100.hosts must be a list"),
        ("[kinds.h100]\nhosts = ['a[1-']\n", "kinds.h100.hosts"),
        ("[kinds.h100]\nhosts = ['g[1-1000000000]']\n", "1,000,000,000 hosts"),
        ("[kinds.h100]\nhosts = ['a[1-60000]', 'b[1-60000]']\n", "120,000 hosts"),
        ("[kinds.h100]\nhosts = ['a']\nhots = 1\n", "unknown key 'hots'"),
        ("[kinds.a]\nhosts = ['x']\n[kinds.b]\nhosts = ['x']\n", "x is in kinds.a and in kinds.b"),
        ("hosts = ['a']\n", "hosts number 1 must be a table"),
        ("[hosts]\nname = 'a'\n", "[[hosts]]"),
        ("[[hosts]]\naddress = 'a'\n", "hosts number 1 has no name"),
        ("[[hosts]]\nname = 'a'\n[[hosts]]\nname = 'a'\n", "a twice"),
        ("[[hosts]]\nname = 'root@a'\n", "fields of their own"),
        ("[[hosts]]\nname = '-x'\n", "hosts number 1"),
    ],
)
def test_what_is_wrong_in_a_hosts_file_is_named(text, says):
    with pytest.raises(InputError) as caught:
        read_toml(text, where="hosts.toml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("hosts.toml: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts.toml", "[[hosts]]\nname = 'gpu1'\n"),
        ("hosts.yml", "all: {hosts: {gpu1: }}"),
        ("hosts.YAML", "all: {hosts: {gpu1: }}"),
        ("hosts.json", '{"all": {"hosts": {"gpu1": {}}}}'),
        ("hosts", "gpu1\n"),
        ("hosts.ini", "[all]\ngpu1\n"),
    ],
)
def test_the_suffix_tells_the_form(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_inventory(tmp_path / name) == (Host(name="gpu1"),)


def test_files_that_are_no_inventory_are_refused_by_name(tmp_path):
    for name, data in {"empty.ini": b"", "binary": b"\xff\xfe", "big": b"#" * (16 << 20) + b"#"}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=name):
            read_inventory(tmp_path / name)
    for name in ("missing.toml", "."):
        with pytest.raises(InputError, match="inventory file"):
            read_inventory(tmp_path / name)


def test_names_of_a_command_line_are_read():
    hosts = read_names(["gpu[1-2]", "root@gpu3:22,gpu1"])
    assert hosts == (Host(name="gpu1"), Host(name="gpu2"), Host(name="gpu3", user="root", port=22))


def test_a_name_twice_with_other_fields_is_refused():
    with pytest.raises(InputError, match="gpu1 is named twice"):
        read_names(["gpu1", "root@gpu1"])


def test_an_argument_is_a_file_or_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster").write_text("gpu1\ngpu2\n")
    assert [host.name for host in find_hosts(["cluster", "gpu3", "gpu1"])] == ["gpu1", "gpu2", "gpu3"]
    for missing in ("folder/hosts", "hosts.toml"):
        with pytest.raises(InputError, match=missing):
            find_hosts([missing])


PLACES = """
[kinds.h100]
hosts = ["gpu[001-004]"]
[[places]]
hosts = ["gpu[001-002]"]
rack = "r1"
[[places]]
hosts = ["gpu[002-003]"]
switch = "leaf1"
lot = "2026-07"
[[hosts]]
name = "gpu004"
power = "pdu9"
"""


def test_places_say_what_hosts_share():
    shared = [(each.rack, each.switch, each.power, each.lot) for each in read_toml(PLACES, where="hosts.toml")]
    assert shared == [
        ("r1", None, None, None),
        ("r1", "leaf1", None, "2026-07"),
        (None, "leaf1", None, "2026-07"),
        (None, None, "pdu9", None),
    ]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('[[places]]\nhosts = ["gpu009"]\nrack = "r1"', "places number 3: gpu009 is no host of this file"),
        ('[[places]]\nhosts = ["gpu001"]\nrack = "r2"', "places number 3: gpu001 has rack 'r1' and 'r2'"),
        ('[[places]]\nhosts = ["gpu001"]\nrow = "2"', "places number 3: unknown key 'row'"),
        ('[[places]]\nhosts = "gpu001"', "places number 3.hosts must be a list"),
    ],
)
def test_a_place_that_is_wrong_is_refused_by_its_number(more, says):
    first, places = PLACES.split("[[hosts]]", maxsplit=1)[0], more
    with pytest.raises(InputError, match=says):
        read_toml(first + places, where="hosts.toml")


def test_a_file_that_says_no_size_is_read_no_further_than_an_inventory_goes():
    """Found by hand: a device has size 0 and no end."""
    with pytest.raises(InputError, match="that is no inventory"):
        read_inventory(Path("/dev/zero"))
