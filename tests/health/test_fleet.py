"""Hosts of one kind are compared with each other, and only with a clear majority or a bulk."""

import numpy as np
import pytest

from wholestack.health.check import Cause, Expectation
from wholestack.health.fleet import CLEAR_MAJORITY, FEWEST_VOTERS, alike, compare
from wholestack.health.parts import HOST, Part
from wholestack.health.result import HostResult, SeenMeasure, SeenTrait

DRIFT = Cause(code="gpu.drift", says="another driver", owner="cluster team", remedy="install the same")
HOT = Cause(code="gpu.hot", says="hotter than the others", owner="data centre", remedy="look at the fans")
CAUSES = {"gpu.drift": (DRIFT, "gpu.driver"), "gpu.hot": (HOT, "gpu.heat")}
GPUS = tuple(Part(kind="gpu", key=f"0000:{number:02x}:00") for number in range(8))


def host(name, *, kind="h100", traits=(), measures=()):
    return HostResult(
        host=name, kind=kind, at=1.0, seconds=1.0, attempts=1, parts=(*GPUS, HOST), traits=traits, measures=measures
    )


def trait(value, parts=(8,), name="gpu.driver", **kwargs):
    return SeenTrait(name=name, value=value, cause="gpu.drift", parts=parts, **kwargs)


def drivers(*values, **kwargs):
    return [host(f"n{index}", traits=(trait(value),), **kwargs) for index, value in enumerate(values)]


def odd(results, expectations=None, **kwargs):
    found = compare(results, expectations or {}, CAUSES, **kwargs)
    return {name: [each.symptom for each in symptoms] for name, symptoms in found.items()}


def test_one_that_differs_from_the_clear_majority_is_named_with_the_count():
    found = odd(drivers("550", "550", "550", "535", "550"))
    ((only,),) = found.values()
    assert list(found) == ["n3"]
    assert only.cause == DRIFT
    assert only.evidence == ("gpu.driver is 535; 4 of 5 hosts of kind h100 have 550",)


@pytest.mark.parametrize(
    "values",
    [
        ("a", "b"),
        ("a", "a", "b"),
        ("a", "a", "b", "b"),
        ("a", "a", "a", "a", "b", "b"),
        ("a", "b", "c", "d", "e"),
        ("a",) * 70 + ("b",) * 30,
    ],
)
def test_without_a_clear_majority_nobody_is_named(values):
    assert odd(drivers(*values)) == {}
    assert FEWEST_VOTERS == 4
    assert CLEAR_MAJORITY == 0.75


def test_what_the_profile_states_is_not_put_to_the_vote():
    stated = {"h100": Expectation(traits={"gpu.driver": "535"})}
    assert odd(drivers("550", "550", "550", "535"), stated) == {}


def test_a_trait_of_things_in_use_is_not_put_to_the_vote():
    hosts = [host(f"n{n}", traits=(trait(n // 4, drifts=False),)) for n in range(5)]
    assert odd(hosts) == {}


def test_kinds_are_not_compared_with_each_other():
    assert odd([*drivers(*"aaaa"), *(host("x", kind="login", traits=(trait("b"),)),)]) == {}


def test_one_odd_part_is_named_and_of_a_host_with_none_but_odd_parts_the_host():
    plain = [host(f"n{n}", traits=(trait("a", tuple(range(8))),)) for n in range(4)]
    one = host("one", traits=(trait("a", tuple(range(7))), trait("b", (7,))))
    whole = host("all", traits=(trait("b", tuple(range(8))),))
    found = odd([*plain, *plain[:0], one, whole, *(host(f"m{n}", traits=plain[0].traits) for n in range(4))])
    assert [each.part for each in found["one"]] == [GPUS[7]]
    assert [each.part for each in found["all"]] == [HOST]
    assert "all 8 parts" in found["all"][0].evidence[0]
    assert set(found) == {"one", "all"}


def test_parts_that_differ_by_nature_are_compared_with_their_namesakes():
    def ports(name, slow=25):
        return host(name, traits=(trait(400, (0, 1)), trait(slow, (2,))))

    found = odd([*(ports(f"n{n}") for n in range(4)), ports("odd", slow=10)])
    assert {name: [each.part for each in symptoms] for name, symptoms in found.items()} == {"odd": [GPUS[2]]}


def test_hosts_of_no_stated_kind_are_told_apart_by_their_hardware():
    def box(name, model, driver):
        traits = (trait(driver), trait(model, (0,), name="gpu.name")) if model else (trait(driver),)
        return host(name, kind="default", traits=traits)

    mixed = [box(f"h{n}", "H100", "550") for n in range(6)] + [box("a", "A100", "535")]
    assert odd(mixed) == {}
    assert sorted(map(len, alike(mixed).values())) == [1, 6]
    blind = box("blind", "", "535")
    assert list(odd([*mixed, blind])) == ["blind"]


def heat(name, values, kind="h100", bad="high", least=0.0):
    measure = SeenMeasure(
        name="gpu.temperature_c",
        cause="gpu.hot",
        parts=tuple(range(len(values))),
        values=tuple(values),
        bad=bad,
        least=least,
    )
    return host(name, kind=kind, measures=(measure,))


def warm(rng, count=64, gpus=8, **kwargs):
    """Every host warm in its own way, every slot too."""
    slots = np.arange(gpus) * 1.5
    return [heat(f"n{n}", list(rng.normal(60, 5) + slots + rng.normal(0, 1, gpus)), **kwargs) for n in range(count)]


def test_a_part_that_is_hot_among_its_neighbours_is_named_although_other_hosts_are_hotter():
    results = warm(np.random.default_rng(3))
    cool = min(results, key=lambda each: each.measures[0].values[2])
    values = list(cool.measures[0].values)
    values[2] += 35
    results[results.index(cool)] = heat(cool.host, values)
    found = odd(results)
    assert list(found) == [cool.host]
    (only,) = found[cool.host]
    assert (only.part, only.status) == (GPUS[2], "warn")
    assert "neighbours" in only.evidence[0]
    assert "chance" in only.evidence[1]


def test_a_host_that_is_hot_as_a_whole_is_blamed_as_a_whole():
    results = warm(np.random.default_rng(4), count=256)
    results[9] = heat("n9", [400.0] * 8)
    found = odd(results)
    assert [(name, each.part) for name, symptoms in found.items() for each in symptoms] == [("n9", HOST)]


def test_a_single_number_a_host_is_compared_over_hosts_on_its_bad_side():
    rng = np.random.default_rng(5)
    values = rng.normal(60, 1, 256)
    values[3], values[4] = 200, -200
    high = [heat(f"n{n}", [value]) for n, value in enumerate(values)]
    low = [heat(f"n{n}", [value], bad="low") for n, value in enumerate(values)]
    both = [heat(f"n{n}", [value], bad="both") for n, value in enumerate(values)]
    assert (list(odd(high)), list(odd(low)), sorted(odd(both))) == (["n3"], ["n4"], ["n3", "n4"])


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_few_hosts_have_no_baseline(count):
    results = warm(np.random.default_rng(6), count=count)
    results[0] = heat("n0", [500.0, *results[0].measures[0].values[1:]])
    assert odd(results) == {}


def test_a_difference_below_the_least_is_nothing():
    results = warm(np.random.default_rng(3), least=100.0)
    results[0] = heat("n0", [99.0 + results[0].measures[0].values[0], *results[0].measures[0].values[1:]], least=100.0)
    assert odd(results) == {}


def test_healthy_sweeps_are_silent_whatever_the_order():
    rng = np.random.default_rng(8)
    for _ in range(20):
        results = warm(rng)
        rng.shuffle(results)
        assert odd(results) == {}


def test_the_stated_rate_is_shared_by_all_tests_of_a_sweep():
    """The more measures are compared, the more each has to stand out."""
    results = warm(np.random.default_rng(3))
    values = list(results[0].measures[0].values)
    for bump in np.arange(5.0, 60.0, 1.0):
        bumped = [heat("n0", [values[0] + bump, *values[1:]]), *results[1:]]
        if odd(bumped, alpha=1e-2):
            assert odd(bumped, alpha=1e-2 / 1e6) == {}
            return
    raise AssertionError("never found")


def warmed(hot, *, count=10, certain=12.0):
    """Hosts whose GPUs differ by host and by place, some hotter by host and place."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(count):
        values = [float(round(rng.normal(0, 3) + 4 * (place % 2))) for place in range(8)]
        for place in hot.get(number, {}):
            values[place] = hot[number][place] + 4 * (place % 2)
        one = SeenMeasure(
            name="gpu.beside_c",
            cause="gpu.hot",
            bad="high",
            certain=certain,
            parts=tuple(range(8)),
            values=tuple(values),
        )
        found.append(host(f"n{number}", measures=(one,)))
    return found


def test_what_physics_excludes_needs_no_statistics():
    hot = {3: {5: 17.0}, 4: {1: 18.0}, 6: {0: 19.0}, 7: {2: 20.0}}
    found = odd(warmed(hot))
    assert {name: [each.part.key for each in symptoms] for name, symptoms in found.items()} == {
        f"n{number}": [GPUS[place].key for place in places] for number, places in hot.items()
    }
    assert all(each.status == "warn" for symptoms in found.values() for each in symptoms)
    assert odd(warmed(hot, certain=None)) == {}
    assert odd(warmed({})) == {}


def test_half_of_a_hosts_parts_are_a_second_state_and_not_certain():
    assert odd(warmed({3: {place: 30.0 for place in range(3)}})) == {}
