"""What must not leave the house does not, and what shows a fault stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.tickets.secrets import LONGEST, MASK, Masking

OPENSSH = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"
SECRETS = (
    ("password=hunter2", "hunter2"),
    ("Passwd: hunter2", "hunter2"),
    ("db_password='hunter 2 with blanks' next", "hunter 2"),
    ('{"user": "x", "api_key": "abc123"}', "abc123"),
    ('"token":"abc\\"def"', "def"),
    ("mount -o username=x,password=hunter2,vers=3 //s/d", "hunter2"),
    ("prog --password hunter2 --verbose", "hunter2"),
    ("prog --api-key=hunter2", "hunter2"),
    ("sshpass -p hunter2 ssh x", "hunter2"),
    ("curl -s -u me:hunter2 https://x/", "hunter2"),
    ("Authorization: Bearer abcdefgh12345678", "abcdefgh"),
    ("using bearer abcdefgh12345678 now", "abcdefgh"),
    ("proxy http://me:hunter2@proxy:3128/ refused", "hunter2"),
    ("git clone https://hunter2token@host/x", "hunter2token"),
    ("AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7"),
    ("hf_abcdefghijklmnopqrstuvwx", "hf_abcdef"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"),
    ("sk-abcdefghijklmnop1234", "abcdefghij"),
    ("xoxb-1234567890-abc", "1234567890"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123", "eyJzdWIi"),
    ("started with WANDB_KEY=abc123 MASTER_ADDR=10.0.0.1", "abc123"),
    ("started with WANDB_KEY=abc123 MASTER_ADDR=10.0.0.1", "10.0.0.1"),
    ('env HOME="/home/ann b" x', "ann"),
    ("snmp community: public1", "public1"),
    ("opaque " + "aB3" * 16, "aB3aB3aB3"),
    ("opaque " + "0123456789abcdef" * 3, "0123456789abcdef"),
    ("TOKEN=$(cat x) PIN=1234", "1234"),
    ("SOME_SECRET=0x1234", "0x1234"),
)


@pytest.mark.parametrize(("line", "secret"), SECRETS)
def test_a_secret_is_masked(line, secret):
    masking = Masking()
    masked = masking.text(f"Nov 30 10:00:00 gpu001 app[7]: {line}")
    assert secret not in masked
    assert MASK in masked
    assert masked.startswith("Nov 30 10:00:00 gpu001 app[7]:")
    assert masking.count == 1


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "mlx5_0/1 fe80:0000:0000:0000:0c42:a103:0065:7b3e serial 1681301967132",
        "GPU-3e8a2c5b-7a58-4ad2-9d32-1c7d3f5be1a0 uncorrectable 12, threshold 1",
        "nvme nvme3: I/O 512 QID 7 timeout, aborting",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x12 offset:0x0)",
        "mce: [Hardware Error]: Machine check events logged, bank 5: be00000000800400",
        "Solidigm SSDPF2KX038T1 PHAC1234567890ABCD firmware 9CV10490",
        "gpu.ecc_mode is Disabled; 24 of 25 hosts of kind a100-8-hdr have Enabled",
        "https://docs.kernel.org/admin-guide/ras.html",
        "nvme nvme3: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
        "AER: Corrected error, severity=Corrected, type=Physical Layer",
    ],
)
def test_what_shows_a_fault_stays(line):
    masking = Masking()
    assert (masking.text(line), masking.count) == (line, 0)


@pytest.mark.parametrize("prefix", ["", "Nov 30 10:00:00 gpu001 app[7]: "])
def test_a_private_key_is_masked_from_its_first_line_to_its_last(prefix):
    lines = [
        "before",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        OPENSSH,
        "short",
        "-----END OPENSSH PRIVATE KEY-----",
        "after",
    ]
    masked = Masking().everything([prefix + line for line in lines])
    assert masked == [f"{prefix}before", MASK, MASK, MASK, MASK, f"{prefix}after"]


def test_a_key_in_one_line_or_without_its_beginning_is_masked():
    assert OPENSSH[:30] not in Masking().text(
        f"-----BEGIN RSA PRIVATE KEY----- {OPENSSH} -----END RSA PRIVATE KEY-----"
    )
    assert OPENSSH[:30] not in Masking().text(OPENSSH)


def test_a_key_that_does_not_end_takes_only_its_own_list():
    masked = Masking().everything({"lines": ["-----BEGIN PRIVATE KEY-----", "x"], "serial": "123"})
    assert masked == {"lines": [MASK, MASK], "serial": "123"}


@given(st.text(alphabet=st.characters(), max_size=2_000))
def test_every_text_is_printable_bounded_and_can_be_encoded(text):
    masked = Masking().text(text)
    assert masked.isprintable()
    assert len(masked) <= LONGEST + 20
    masked.encode()
    assert "\n" not in masked


def test_a_huge_text_takes_no_time_that_counts():
    for text in ("token" * 100_000, "a" * 1_000_000, "curl " * 100_000, "A_" * 200_000, "x://" * 100_000):
        assert len(Masking().text(text)) <= LONGEST + 20
