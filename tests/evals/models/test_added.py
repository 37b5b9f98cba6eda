"""Backends of installed packages: found by their entry points, and each mistake of theirs one line that names them."""

import json

import pytest

from tests.installing import install
from wholestack.cli.main import main
from wholestack.errors import InputError
from wholestack.evals.backend import Opening, Writing
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.models.opening import ENTRY_POINTS, open_backend
from wholestack.evals.results import score_into
from wholestack.testing.evals_backend import BackendConformance

MODULE = """
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.models.opening import BackendKind

def open_it(name, opening):
    return MemoryBackend(name.encode() * 9, name=name)

class Wrong(MemoryBackend):
    def score(self, items, *, done=()):
        yield from super().score(items[:2])
        {in_score}

    def generate(self, prompts, writing):
        return iter(["a text"])

    def expense(self, items, prompts=(), writing=None):
        return {{}}["tokens"]

def open_wrong(name, opening):
    return Wrong(b"abc", name=name)

def open_nothing(name, opening):
    return object()

def fails(*given):
    raise RuntimeError("no\\nluck")

NOT_A_KIND = "memory"
KIND = BackendKind(says="drift:TEXT", takes=lambda name: name.startswith("drift:"), opens="drifting:open_it")
WRONG = BackendKind(says="wrong", takes=lambda name: name == "wrong", opens="drifting:open_wrong")
NOTHING = BackendKind(says="nothing", takes=lambda name: name == "nothing", opens="drifting:open_nothing")
FAILS = BackendKind(says="fails", takes=lambda name: name == "fails", opens="drifting:fails")
ASKED = BackendKind(says="asked", takes=fails, opens="drifting:fails")
"""
NAMED = r"plug-in '\w+' of package drifts 2\.1 \(wholestack\.evals_backends\): "
ITEMS = [make_item(f"{number} and", ["more", "less"], 0, source="s", id=f"i{number}") for number in range(4)]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs modules and entry points for the time of a test."""

    def make(*, in_score="raise RuntimeError('gave up')", version="2.1", **entries):
        folder = tmp_path / f"site-{version}"
        install(folder, "drifts", version, {ENTRY_POINTS: entries})
        (folder / "drifting.py").write_text(MODULE.format(in_score=in_score))
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(__import__("sys").modules, "drifting", raising=False)
        return folder

    return make


class TestConformance(BackendConformance):
    @pytest.fixture(autouse=True)
    def _installed(self, package):
        package(drift="drifting:KIND")

    def make_backend(self):
        return open_backend("drift:tin is a metal", Opening())

    def make_other(self):
        return open_backend("drift:tin is a medal", Opening())


def refused(says, name):
    with pytest.raises(InputError, match=says) as caught:
        open_backend(name, Opening())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_version_of_the_package_is_another_key(package, tmp_path, monkeypatch):
    keys = []
    for version in ("2.1", "2.2"):
        with monkeypatch.context():
            package(version=version, drift="drifting:KIND")
            result = score_into(
                open_backend("drift:x", Opening()), seal_items(ITEMS, kind="items from a file"), tmp_path
            )
            keys.append(result.plan.key)
    assert len(set(keys)) == 2


def test_an_unknown_name_lists_what_plug_ins_take(package):
    package(drift="drifting:KIND")
    assert "drift:TEXT (drifts 2.1)" in refused("there is no model 'gpt-7'", "gpt-7")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("nowhere:KIND", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
        ("drifting:KINDS", "cannot be loaded: AttributeError"),
        ("drifting:NOT_A_KIND", "drifting:NOT_A_KIND is a str, not a BackendKind"),
        ("drifting:ASKED", "cannot tell whether 'gpt-7' is its own: RuntimeError: no luck"),
    ],
)
def test_a_plug_in_that_cannot_be_asked_is_named_and_in_nobody_s_way(package, entry, says):
    package(a=entry, b="drifting:KIND")
    refused(f"there is no model 'gpt-7'; {NAMED}{says}", "gpt-7")
    assert open_backend("drift:x", Opening()).identity.name == "drift:x"
    assert open_backend("memory", Opening()).identity.kind == "memory"


def test_a_plug_in_that_cannot_open_is_one_line(package):
    package(a="drifting:FAILS", b="drifting:NOTHING")
    refused(f"{NAMED}fails: cannot be opened: RuntimeError: no luck \\(mend or uninstall that package\\)", "fails")
    refused(f"{NAMED}what it opened is no backend", "nothing")


@pytest.mark.parametrize(
    ("in_score", "says"),
    [
        ("raise RuntimeError('gave up')", "cannot score: RuntimeError: gave up"),
        ("yield 3.5", "gave float where ItemScore was due"),
        ("yield items[2].context.nothing", "cannot score: AttributeError"),
    ],
)
def test_a_plug_in_that_fails_while_it_scores_is_one_line_and_what_was_scored_is_kept(
    package, tmp_path, in_score, says
):
    package(in_score=in_score, wrong="drifting:WRONG")
    seen = []
    with pytest.raises(InputError, match=NAMED + says) as caught:
        score_into(
            open_backend("wrong", Opening()),
            seal_items(ITEMS, kind="items from a file"),
            tmp_path,
            watch=lambda done, total: seen.append(done),
        )
    assert "\n" not in str(caught.value)
    assert seen[-1] == 2


def test_its_other_calls_are_guarded_too(package):
    package(wrong="drifting:WRONG")
    backend = open_backend("wrong", Opening())
    with pytest.raises(InputError, match=NAMED + "cannot say what it takes: KeyError: 'tokens'"):
        backend.expense(ITEMS)
    with pytest.raises(InputError, match=NAMED + "gave str where Generation was due"):
        list(backend.generate(["a"], Writing(max_tokens=1)))


def test_the_command_says_it_in_one_line(package, tmp_path, monkeypatch, capsys):
    package(wrong="drifting:WRONG")
    monkeypatch.chdir(tmp_path)
    row = {"id": "t", "context": "The ti", "choices": ["de", "qx"], "gold": 0}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(SystemExit) as ended:
        main(["evals", "score", "t.jsonl", "--model", "wrong"])
    assert ended.value.code == 2
    assert "Traceback" not in (said := capsys.readouterr().err)
    assert said.splitlines()[-1].startswith("wholestack: plug-in 'wrong' of package drifts 2.1")
