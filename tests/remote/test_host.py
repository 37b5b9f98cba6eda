"""Hosts as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.remote.host import Host, parse_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("gpu1", Host(name="gpu1")),
        ("root@gpu1", Host(name="gpu1", user="root")),
        ("gpu1.example.org:2222", Host(name="gpu1.example.org", port=2222)),
        ("svc_admin@10.0.0.1:22", Host(name="10.0.0.1", port=22, user="svc_admin")),
        ("[::1]", Host(name="::1")),
        ("root@[2001:db8::1]:22", Host(name="2001:db8::1", port=22, user="root")),
        ("[fe80::1%eth0]", Host(name="fe80::1%eth0")),
        ("corp\\me@gpu1", Host(name="gpu1", user="corp\\me")),
    ],
)
def test_a_host_is_read(text, host):
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@gpu1",
        "gpu1:",
        "gpu1:ssh",
        "gpu1:0",
        "gpu1:65536",
        "a b",
        "::1",
        "[::1",
        "-oProxyCommand=x",
        "gpu[1-2]",
        "a@b@c",
        "x\n",
    ],
)
def test_what_is_no_host_is_refused(text):
    with pytest.raises(InputError, match=r"host|port"):
        parse_host(text)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        host = parse_host(text)
    except InputError:
        return
    assert host.name
    assert not host.name.startswith("-")
