"""Profiles: what each kind of host should be like, as a TOML file.

::

    [kinds.h100]
    checks = ["gpu.ecc", "ib.state"]              # must apply: nothing to look at is a fail

    [kinds.h100.traits]                           # must be so on every host of this kind
    "gpu.count" = 8

    [kinds.h100.limits]                           # thresholds other than the defaults
    "filesystem.full_share" = 0.98

    [kinds.h100.options]
    container_image = "registry.local/cuda:12.4"

Strict: a name that the catalogue does not know is refused with the nearest one that it does. ``learn`` writes a
profile from hosts called good.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from wholestack.errors import InputError
from wholestack.health.catalog import CHECKS, nearest
from wholestack.health.check import Check, Expectation, Scalar
from wholestack.health.cleaning import is_number
from wholestack.health.formats.manifest import expectation as manifest_expectation
from wholestack.health.formats.manifest import looks_like_manifest
from wholestack.health.names import fold
from wholestack.health.result import HostResult
from wholestack.remote.host import DEFAULT_KIND

TABLES = ("traits", "limits", "checks", "options")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Expectations by kind of host."""

    kinds: dict[str, Expectation] = field(default_factory=dict)

    def of(self, kind: str) -> Expectation:
        """What to expect of a kind; of one that is not in the profile, nothing.

        A host whose kind nobody stated is of the only kind of the profile, if there is only one.
        """
        if kind == DEFAULT_KIND and len(self.kinds) == 1:
            return next(iter(self.kinds.values()))
        return self.kinds.get(kind, Expectation())

    def for_kinds(self, kinds: Iterable[str]) -> dict[str, Expectation]:
        """Expectations of the kinds of a sweep.

        Raises:
            InputError: the profile is not empty and speaks of none of them.
        """
        wanted = sorted(set(kinds))
        found = {kind: self.of(kind) for kind in wanted}
        if self.kinds and all(each == Expectation() for each in found.values()):
            raise InputError(
                f"the profile speaks of {', '.join(self.kinds)}, the hosts are of kind {', '.join(wanted)}",
                remedy="give the hosts their kind in the inventory, or name the table of the profile after it",
            )
        return found


def read_profile(text: str, *, where: str = "profile", checks: Sequence[Check] = CHECKS) -> Profile:
    """Read a profile.

    Args:
        text: TOML.
        where: Named in errors: the file.
        checks: Whose names are known.

    Raises:
        InputError: it is no TOML, or has a name that is not known or a value of the wrong type; names file and key.
    """
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where}: no TOML: {error}") from error
    _refuse_unknown(raw, ("kinds",), where, "table")
    kinds = _table(raw.get("kinds", {}), f"{where}: kinds")
    if not kinds:
        raise InputError(f"{where}: no kind of host in it", remedy="begin with a line such as [kinds.h100.traits]")
    return Profile(kinds={name: _expectation(body, f"{where}: kinds.{name}", checks) for name, body in kinds.items()})


def expectation_from(text: str, *, where: str = "profile", kind: str | None = None) -> Expectation:
    """What to expect of one host: from a profile, or from a JSON manifest of its hardware.

    Args:
        text: TOML of a profile, or JSON of a manifest.
        where: Named in errors: the file.
        kind: Which kind of a profile that has several.

    Raises:
        InputError: it is neither, or the kind is not in it, or has to be named.
    """
    if text.lstrip().startswith(("{", "[")) and _is_json(text):
        return _from_manifest(text, where)
    profile = read_profile(text, where=where)
    if kind is None and len(profile.kinds) > 1:
        raise InputError(f"{where}: has several kinds: {', '.join(profile.kinds)}", remedy="choose one with --kind")
    if kind is not None and kind not in profile.kinds:
        raise InputError(f"{where}: no kind {kind!r}", remedy=f"there are: {', '.join(profile.kinds)}")
    return profile.kinds[kind] if kind is not None else next(iter(profile.kinds.values()))


def learn(results: Iterable[HostResult]) -> str:
    """Write a profile from hosts that are called good.

    Every trait on which they agree, and every check that applied on all of them. What legitimately differs from part
    to part of each host, or is only a count of things in use, is left out and said so in a comment.

    Args:
        results: Of the good hosts, of one or more kinds.

    Raises:
        InputError: there is none; one did not answer or may not train; or hosts of a kind disagree on a trait:
            names them, since one of them is not like the others.
    """
    by_kind: dict[str, list[HostResult]] = {}
    for each in results:
        by_kind.setdefault(each.kind, []).append(each)
    if not by_kind:
        raise InputError("no host to learn from", remedy="name a sweep with hosts that answered")
    return "\n".join(_learnt(kind, members) for kind, members in sorted(by_kind.items()))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _from_manifest(text: str, where: str) -> Expectation:
    if not looks_like_manifest(text):
        remedy = "give the manifest of a node (tables pci, eth, ib), or a profile in TOML"
        raise InputError(f"{where}: JSON, but no manifest that is known", remedy=remedy)
    return manifest_expectation(text)


def _expectation(body: Any, where: str, catalogue: Sequence[Check]) -> Expectation:
    table = _table(body, where)
    _refuse_unknown(table, TABLES, where, "key")
    traits = _flat(_table(table.get("traits", {}), f"{where}.traits"))
    limits = _flat(_table(table.get("limits", {}), f"{where}.limits"))
    options = _table(table.get("options", {}), f"{where}.options")
    checks = table.get("checks", [])
    _refuse_unknown(traits, _known_traits(catalogue), f"{where}.traits", "trait")
    _refuse_unknown(limits, _known_limits(catalogue), f"{where}.limits", "limit")
    _refuse_unknown(options, _known_options(catalogue), f"{where}.options", "option")
    if not isinstance(checks, list):
        raise InputError(f"{where}.checks: is {checks!r}, must be a list of names")
    _refuse_unknown([str(name) for name in checks], [each.name for each in catalogue], f"{where}.checks", "check")
    for name, value in traits.items():
        _require(isinstance(value, str) or is_number(value), f"{where}.traits.{name}", value, "a text or number")
    for name, value in limits.items():
        number = is_number(value) and not isinstance(value, bool)
        _require(number, f"{where}.limits.{name}", value, "a number")
        _require(value >= 0, f"{where}.limits.{name}", value, "at least 0")
    for name, value in options.items():
        _require(isinstance(value, str), f"{where}.options.{name}", value, "a text")
    return Expectation(
        traits=traits,
        limits={name: float(value) for name, value in limits.items()},
        checks=tuple(checks),
        options=options,
    )


def _known_traits(checks: Sequence[Check]) -> list[str]:
    """Names, and patterns such as ``drive.firmware.*`` where a name has a part of its own in it."""
    return sorted({name for check in checks for name in check.trait_names})


def _known_limits(checks: Sequence[Check]) -> list[str]:
    return sorted({limit.name for check in checks for limit in check.limits})


def _known_options(checks: Sequence[Check]) -> list[str]:
    of_probes = {probe.option for check in checks for probe in check.probes if probe.option}
    return sorted(of_probes | {name for check in checks for name in check.options})


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``gpu.count = 8`` is a table in a table to TOML, ``"gpu.count" = 8`` is not; both are meant alike."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: is {value!r}, must be a table")
    return value


def _require(right: bool, where: str, value: object, wanted: str) -> None:
    if not right:
        raise InputError(f"{where}: is {value!r}, must be {wanted}")


def _refuse_unknown(given: Iterable[str], known: Sequence[str], where: str, noun: str) -> None:
    for name in given:
        if not any(fnmatchcase(name, each) for each in known):
            raise InputError(f"{where}: unknown {noun} {name!r}", remedy=nearest(name, known))


def _learnt(kind: str, results: Sequence[HostResult]) -> str:
    for each in results:
        if each.trouble is not None:
            raise InputError(f"{each.host} did not answer ({each.trouble})", remedy="leave it out with --hosts")
    traits, left_out = _common_traits(results)
    checks = _common_checks(results)
    names = fold([each.host for each in results])
    count = f"{len(results)} host{'s' if len(results) != 1 else ''}"
    lines = [f"# {kind}: learnt from {count} called good: {names}", f"[kinds.{_key(kind)}]"]
    lines += ["checks = [", *(f"    {_toml(name)}," for name in checks), "]", "", f"[kinds.{_key(kind)}.traits]"]
    lines += [f"{_toml(name)} = {_toml(value)}" for name, value in sorted(traits.items())]
    lines += [f"# {name}: {why}" for name, why in sorted(left_out.items())]
    return "\n".join(lines) + "\n"


def _common_traits(results: Sequence[HostResult]) -> tuple[dict[str, Scalar], dict[str, str]]:
    """Traits with one value, and why the others are left out."""
    agreed: dict[str, Scalar] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(trait.name for each in results for trait in each.traits):
        by_host = {each.host: {t.value for t in each.traits if t.name == name} for each in results}
        values = {value for of_host in by_host.values() for value in of_host}
        drifts = all(trait.drifts for each in results for trait in each.traits if trait.name == name)
        if any(not of_host for of_host in by_host.values()):
            left_out[name] = f"not on all of them (on {fold([host for host in by_host if by_host[host]])})"
        elif len(values) == 1:
            agreed[name] = values.pop()
        elif all(of_host == values for of_host in by_host.values()):
            left_out[name] = "differs from part to part"
        elif not drifts:
            left_out[name] = "differs from host to host, as things in use do"
        else:
            _refuse_disagreeing(name, by_host)
    return agreed, left_out


def _refuse_disagreeing(name: str, by_host: Mapping[str, set[Scalar]]) -> None:
    said = Counter(", ".join(sorted(map(str, values))) for values in by_host.values())
    usual = said.most_common(1)[0][0]
    groups = {
        value: fold([host for host in by_host if ", ".join(sorted(map(str, by_host[host]))) == value])
        for value, _ in reversed(said.most_common())
    }
    listed = "; ".join(f"{value} on {hosts}" for value, hosts in groups.items())
    odd = next(hosts for value, hosts in groups.items() if value != usual)
    raise InputError(
        f"the hosts called good disagree on {name}: {listed}",
        remedy=f"leave out those that are not good ({odd}?) with --hosts, or give them another kind",
    )


def _common_checks(results: Sequence[HostResult]) -> list[str]:
    """Checks that applied on all, in the order of the catalogue."""
    applied = [set(each.passed) | {symptom.check for symptom in each.symptoms} for each in results]
    common = set.intersection(*applied) - {name for each in results for name in _counted_none(each)}
    return [check.name for check in CHECKS if check.name in common]


def _counted_none(result: HostResult) -> Iterator[str]:
    """Checks that pass because there is none of what they count, as ports without InfiniBand: need not apply."""
    for check in CHECKS:
        counts = [trait.value for trait in result.traits if trait.name in check.trait_names and "count" in trait.name]
        if counts and not any(counts):
            yield check.name


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _toml(name)


def _toml(value: Scalar) -> str:
    """A scalar as TOML has it: JSON's spelling of text, numbers and truth is TOML's as well."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
