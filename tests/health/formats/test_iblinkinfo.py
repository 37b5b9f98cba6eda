"""``iblinkinfo`` as its source prints it: links, ports without one, what a link could be; a cut line is an error."""

import pytest

from wholestack.health.formats.iblinkinfo import looks_like_iblinkinfo, read_iblinkinfo
from wholestack.health.probe import UnreadableError

NODES = """\
CA: gpu001 mlx5_0:
      0x08c0eb0300a00001      7    1[  ] ==( 4X       106.25 Gbps Active/  LinkUp)==>       3    1[  ] \
"MF0;leaf1:MQM9700/U1" ( )
Switch: 0x08c0eb0300b00001 MF0;leaf1:MQM9700/U1:
           3    1[  ] ==( 4X       106.25 Gbps Active/  LinkUp)==>       7    1[  ] "gpu001 mlx5_0" ( )
           3    2[  ] ==( 1X       53.125 Gbps Active/  LinkUp)==>       9   12[  ] "spine1" \
( Could be 4X Could be 106.25 Gbps)
           3    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
           3    4[  ] ==(                Down/Disabled)==>             [  ] "" ( )
"""
LINES = """\
0x08c0eb0300b00001 "          MF0;leaf1:MQM9700/U1"      3    1[  ] ==( 4X         10.0 Gbps (FDR10) Active/  LinkUp)\
==>  0x08c0eb0300a00001      7    1[  ] "gpu001 mlx5_0" ( )
0x08c0eb0300b00001 "          MF0;leaf1:MQM9700/U1"      3    3[  ] ==(                Down/ Polling)\
==>             [  ] "" ( )
"""


def test_a_link_has_both_ends_and_a_port_without_one_its_state() -> None:
    assert looks_like_iblinkinfo(NODES)
    found = read_iblinkinfo(NODES)
    assert [
        (end.node.kind, end.node.guid, end.port, end.peer, end.width, end.speed, end.state) for end in found.ends
    ] == [
        ("CA", "8c0eb0300a00001", 1, ("8c0eb0300b00001", 1), "4x", "NDR", "active/linkup"),
        ("SW", "8c0eb0300b00001", 1, ("8c0eb0300a00001", 1), "4x", "NDR", "active/linkup"),
        ("SW", "8c0eb0300b00001", 2, ("lid 9", 12), "1x", "HDR", "active/linkup"),
        ("SW", "8c0eb0300b00001", 3, None, "", "", "down/polling"),
        ("SW", "8c0eb0300b00001", 4, None, "", "", "down/disabled"),
    ]
    assert [end.could_be for end in found.ends if end.could_be] == ["Could be 4X Could be 106.25 Gbps"]
    assert (found.unconnected, [node.name for node in found.nodes]) == (2, ["gpu001 mlx5_0", "MF0;leaf1:MQM9700/U1"])


def test_a_line_a_port_names_the_guid_of_the_other_end() -> None:
    first, second = read_iblinkinfo(LINES).ends
    assert (first.peer, first.speed, first.peer_name) == (("8c0eb0300a00001", 1), "FDR10", "gpu001 mlx5_0")
    assert (first.node.name, second.peer, second.state) == ("MF0;leaf1:MQM9700/U1", None, "down/polling")


@pytest.mark.parametrize("text", [NODES, LINES], ids=["nodes", "--line"])
def test_a_line_that_is_cut_is_an_error_that_names_it(text: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if "==>" not in line:
            continue
        before = "".join(each + "\n" for each in text.splitlines()[: number - 1])
        for end in range(len(line) - len(line.lstrip()) + 1, len(line)):
            with pytest.raises(UnreadableError, match=f"line {number} "):
                read_iblinkinfo(before + line[:end])


def test_nothing_is_an_error() -> None:
    with pytest.raises(UnreadableError):
        read_iblinkinfo("\n")
