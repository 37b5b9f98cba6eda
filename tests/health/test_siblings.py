"""One odd part among at least four is odd; fewer, or two alike, say nothing."""

import pytest

from wholestack.health.siblings import all_but_one


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([4, 4, 4, 1], 4),
        ([1, 4, None, 4, 4], 4),
        ([4, 4, 1], None),
        ([4, 4, 1, 1], None),
        ([4, 4, 4, 1, 1], None),
        ([4, 4, 4, 4], None),
        ([], None),
    ],
)
def test_what_all_but_one_share(values, expected):
    assert all_but_one(values) == expected
