"""Wordings and values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.bootlog.masking import device, filled, is_identity, masked, source


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mlx5_core 0000:1a:00.0: Port up", "mlx5_core 0000:e3:00.1: Port up"),
        ("eth0: MAC 0c:42:a1:9b:00:fe", "eth0: MAC ab:cd:ef:0e:dc:ba"),
        ("root=UUID=3f6c1cf2-93b8-4b1e-8a52-6a1d8f0f1a2b ro", "root=UUID=abcdefab-cdef-abcd-efab-0f0f0f0f0f0f ro"),
        ("veth7f3a9b1: link", "vethc0ffee1: link"),
        ("took 1.5ms at 2025-01-21", "took 22.75ms at 2026-11-30"),
        ("nvme0: 32/0/0 default/read/poll queues", "nvme11: 128/0/0 default/read/poll queues"),
        ("bus range [00-7f]", "bus range [80-ff]"),
    ],
)
def test_lines_that_differ_in_numbers_have_one_wording(one, other):
    assert masked(one).wording == masked(other).wording
    assert masked(one).values != masked(other).values


@pytest.mark.parametrize(
    ("one", "other"),
    [("eno1: link up", "eno1: link down"), ("nvme0: ready", "nvme0: not ready"), ("sda: clean", "sda: dirty")],
)
def test_a_word_that_changed_is_another_wording(one, other):
    assert masked(one).wording != masked(other).wording


@given(st.text(max_size=300).filter(lambda text: "<#>" not in text))
def test_nothing_is_lost(message):
    parts = masked(message)
    assert filled(parts.wording, parts.values) == message


def test_serial_numbers_addresses_and_moments_belong_to_one_thing():
    for value in ("0c:42:a1:9b:00:fe", "3f6c1cf2-93b8-4b1e-8a52-6a1d8f0f1a2b", "S3YKNX0K512345", "1738000000.184:1"):
        assert is_identity(value)
    for value in ("64", "x16", "28.39.1002", "0000:1a:00.0", "0x000000403fffffff", "2638342"):
        assert not is_identity(value)


def test_who_speaks_and_about_what():
    assert source(masked("mlx5_core 0000:1a:00.0: firmware").wording) == "mlx<#>_core"
    assert source(masked("ACPI: Core revision 20210730").wording) == "ACPI"
    assert device("mlx5_core 0000:1a:00.0: firmware") == "mlx5_core 0000:1a:00.0"
    assert device("ACPI: Core revision 20210730") == ""
    assert device("systemd[1]: Mounted /boot") == ""
    assert device("x86/fpu: Supporting XSAVE feature") == ""
    assert device("usb 1-1.4: device descriptor read") == "usb 1-1.4"
