from hypothesis import given
from hypothesis import strategies as st

from wholestack.data.split import Member, choose_splits

MEMBERS = st.lists(
    st.tuples(st.sampled_from(["code", "prose"]), st.integers(1, 5000), st.integers(0, 30)), max_size=80
).map(
    lambda rows: [
        Member(id=f"{index:04d}", source=source, size_bytes=size, cluster=cluster)
        for index, (source, size, cluster) in enumerate(rows)
    ]
)


@given(MEMBERS, st.floats(0, 0.5), st.integers())
def test_no_cluster_straddles_the_split(members, fraction, seed):
    splits = choose_splits(members, fraction=fraction, seed=seed)
    seen = {}
    for member, split in zip(members, splits, strict=True):
        assert seen.setdefault(member.cluster, split) == split


@given(MEMBERS, st.floats(0.01, 0.5), st.integers())
def test_a_source_of_two_clusters_has_something_held_out(members, fraction, seed):
    splits = choose_splits(members, fraction=fraction, seed=seed)
    for source in ("code", "prose"):
        own = {member.cluster for member in members if member.source == source}
        held = {m.source for m, split in zip(members, splits, strict=True) if split == "held_out"}
        assert len(own) < 2 or source in held


@given(st.integers())
def test_the_share_is_met_where_documents_are_small(seed):
    members = [
        Member(id=f"{i}", source="code" if i % 3 else "prose", size_bytes=100 + i % 7, cluster=i) for i in range(800)
    ]
    splits = choose_splits(members, fraction=0.06, seed=seed)
    for source in ("code", "prose"):
        total = sum(m.size_bytes for m in members if m.source == source)
        held = sum(m.size_bytes for m, s in zip(members, splits, strict=True) if m.source == source and s == "held_out")
        assert 0.05 <= held / total <= 0.08


@given(MEMBERS, st.randoms())
def test_the_order_of_documents_does_not_matter(members, rng):
    splits = dict(zip([m.id for m in members], choose_splits(members, fraction=0.2, seed=1), strict=True))
    shuffled = [*members]
    rng.shuffle(shuffled)
    assert dict(zip([m.id for m in shuffled], choose_splits(shuffled, fraction=0.2, seed=1), strict=True)) == splits


def test_another_seed_holds_out_others():
    members = [Member(id=f"{i}", source="code", size_bytes=100, cluster=i) for i in range(200)]
    assert choose_splits(members, fraction=0.1, seed=1) != choose_splits(members, fraction=0.1, seed=2)


def test_nothing_is_held_out_when_nothing_is_asked_for():
    members = [Member(id=f"{i}", source="code", size_bytes=100, cluster=i) for i in range(20)]
    assert set(choose_splits(members, fraction=0, seed=1)) == {"train"}
