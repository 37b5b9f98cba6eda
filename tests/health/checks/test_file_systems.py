"""File systems by `df`."""

import pytest

from tests.health.looking import judged_file, look, never_crashes, said
from tests.health.shared_data import shared
from wholestack.health.checks.file_systems import CHECKS
from wholestack.health.formats.df import read_df
from wholestack.health.probe import UnreadableError

BYTES, INODES = CHECKS
HEAD = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"


def test_real_df_with_pseudo_file_systems_dashes_and_names_with_blanks():
    text = (
        HEAD
        + "udev                     0        0         0       - /dev\n"
        + "tmpfs               100000    10000     90000     10% /run\n"
        + "/dev/loop3           65536    65536         0    100% /snap/core20/2318\n"
        + "/dev/sda1           100000    97000      3000      97% /data sets/a b\n"
        + "//nas/a share       100000    91000      9000      91% /mnt/nas\n"
        + "systemd-1                -        -         -       - /proc/sys/fs/binfmt_misc\n"
    )
    assert said(look(CHECKS, df=text)) == [
        ("fail", "filesystem.full", "filesystem /data sets/a b"),
        ("warn", "filesystem.filling", "filesystem /mnt/nas"),
    ]


def test_reserved_blocks_make_available_negative_and_use_more_than_all():
    assert said(look([BYTES], df=HEAD + "/dev/sda1 100000 105000 -5000 105% /\n")) == [
        ("fail", "filesystem.full", "filesystem /")
    ]


def test_a_long_name_on_a_line_of_its_own_and_a_column_of_types():
    broken = HEAD + "/dev/mapper/a_very_long_volume_group-with_a_long_volume\n   100000 96000 4000 96% /data\n"
    assert said(look([BYTES], df=broken)) == [("fail", "filesystem.full", "filesystem /data")]
    typed = HEAD.replace("  1024-blocks", " Type 1024-blocks") + "/dev/sda1 ext4 100000 96000 4000 96% /data\n"
    assert [(each.device, each.mount) for each in read_df(typed)] == [("/dev/sda1", "/data")]
    assert said(look([BYTES], df=typed.replace("/dev/sda1 ext4", "tmpfs tmpfs"))) == [
        ("fail", "filesystem.full", "filesystem /data")
    ]
    assert look([BYTES], df=typed.replace("ext4", "squashfs")).passed == ("filesystem.bytes",)


def test_a_full_root_of_a_container_and_a_full_shared_memory_are_told():
    text = (
        HEAD
        + "overlay            1000000   999000      1000     100% /\n"
        + "tmpfs                65536    65536         0     100% /dev/shm\n"
        + "shm                  65536    63000      2536      97% /run/containers/a/shm\n"
        + "/dev/loop9          100000    97000      3000      97% /images/scratch\n"
    )
    assert said(look([BYTES], df=text)) == [
        ("fail", "filesystem.full", f"filesystem {mount}")
        for mount in ("/dev/shm", "/run/containers/a/shm", "/images/scratch", "/")
    ]


@pytest.mark.parametrize(
    "line",
    [
        "devtmpfs 65536 65536 0 100% /dev",
        "udev 65536 65536 0 100% /dev",
        "efivarfs 192 180 7 97% /sys/firmware/efi/efivars",
        "/dev/loop3 65536 65536 0 100% /snap/core20/2318",
        "/dev/loop4 65536 65500 36 100% /var/lib/snapd/snap/core20/2318",
        "/dev/loop5 65536 65536 0 100% /mnt/installer",
        "/dev/sr0 65536 65536 0 100% /media/cdrom",
    ],
)
def test_what_nobody_fills_is_not_told(line):
    assert look([BYTES], df=HEAD + line + "\n").passed == ("filesystem.bytes",)


def test_containers_on_a_full_file_system_are_one_finding():
    overlays = "".join(f"overlay 1000000 999000 1000 100% /var/lib/docker/overlay2/{n}/merged\n" for n in range(3))
    assert said(look([BYTES], df=HEAD + overlays + "/dev/sda1 1000000 999000 1000 100% /var\n")) == [
        ("fail", "filesystem.full", "filesystem /var")
    ]
    assert len(said(look([BYTES], df=HEAD + overlays))) == 1


@pytest.mark.parametrize(
    "text", [HEAD, HEAD + "/dev/sda1 100000 96000 4000 9", HEAD + "/dev/sda1\n", HEAD + "a b c d e /\n"]
)
def test_half_a_line_is_unknown(text):
    with pytest.raises(UnreadableError):
        read_df(text)
    assert said(look([BYTES], df=text))[0][0] == "unknown"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["\n", " ", "\n ", "1 ", "- ", "a "])
def test_long_monotonous_texts_take_linear_time(piece):
    for tail in ("", "/", " 1 1 1 1% /"):
        never_crashes(BYTES, HEAD + "/dev/sda1 1 1 1 1% /\n" + piece * 100_000 + tail)


def test_the_shared_output_is_judged_as_its_readme_says():
    for check in CHECKS:
        assert judged_file(check, shared("jc", "centos-7.7_df.out").read_text()).passed == (check.name,)
