"""Alert rules and dashboard: every name in them is a metric or a label that is really exported."""

import json
import re
import shutil
import subprocess

import pytest

from wholestack.health.export.files import packaged
from wholestack.health.export.metrics import METRICS

NAMED = {metric.name: set(metric.labels) for metric in METRICS}
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds."""


def dashboard_expressions():
    return [target["expr"] for panel in json.loads(packaged("dashboard.json"))["panels"] for target in panel["targets"]]


def alerts():
    """Name and expression of each rule: as few lines of YAML as the file uses."""
    blocks = packaged("alerts.yml").split("- alert: ")[1:]
    return {block.split("\n")[0]: re.search(r"expr: (?:>-)?(.*?)\n {8}for:", block, re.S)[1] for block in blocks}


@pytest.mark.parametrize("expression", [*dashboard_expressions(), *alerts().values()])
def test_every_metric_and_label_of_an_expression_is_exported(expression):
    metrics = set(re.findall(r"\bwholestack_\w+", expression))
    assert metrics
    assert metrics <= set(NAMED)
    for metric, matchers in re.findall(r"\b(wholestack_\w+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*[=!]~?", matchers)) <= NAMED[metric]
    grouped = re.findall(r"\b(?:by|on|without) \(([^)]*)\)", expression)
    labels = {label.strip() for group in grouped for label in group.split(",")}
    assert labels <= set().union(*(NAMED[metric] for metric in metrics)) | SCRAPED


def test_legends_and_annotations_name_labels_that_are_there():
    for panel in json.loads(packaged("dashboard.json"))["panels"]:
        for target in panel["targets"]:
            labels = set().union(*(NAMED[name] for name in re.findall(r"\bwholestack_\w+", target["expr"])))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
    for block in packaged("alerts.yml").split("- alert: ")[1:]:
        labels = set().union(*(NAMED[name] for name in re.findall(r"\bwholestack_\w+", block)))
        assert set(re.findall(r"\$labels\.(\w+)", block)) <= labels | SCRAPED


def test_good_hosts_are_only_counted_where_they_are_fresh_by_the_clock_of_prometheus():
    for expression in dashboard_expressions():
        if "host_state" in expression and "may_train" in expression:
            assert "time() - wholestack_health_host_last_seen_timestamp_seconds <=" in expression


def test_every_alert_says_what_where_and_what_to_do_and_has_a_test():
    tests = packaged("alerts_test.yml")
    assert len(alerts()) >= 7
    for block in packaged("alerts.yml").split("- alert: ")[1:]:
        name = block.split("\n")[0]
        assert re.search(r"What: .*Where: .*Do: ", block, re.S), name
        assert f"alertname: {name}\n" in tests, name


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
class TestWithPromtool:
    """The rules by Prometheus' own judgement."""

    @pytest.fixture
    def folder(self, tmp_path):
        for name in ("alerts.yml", "alerts_test.yml"):
            (tmp_path / name).write_text(packaged(name))
        return tmp_path

    def test_the_rules_are_rules(self, folder):
        run = promtool("check", "rules", "--lint=all", "--lint-fatal", folder / "alerts.yml")
        assert run.returncode == 0, run.stdout + run.stderr

    def test_each_fires_when_it_should_and_only_then(self, folder):
        run = promtool("test", "rules", folder / "alerts_test.yml")
        assert run.returncode == 0, run.stdout + run.stderr

    @pytest.mark.parametrize(
        ("was", "is_"),
        [
            ("> 1800", "> 18000"),
            ("source_up == 0", "source_up == 2"),
            ("              <= wholestack", "              >= wholestack"),
            ("> 0.1\n", "> 0.05\n"),
            ("for: 10m", "for: 3h"),
        ],
    )
    def test_a_rule_that_is_wrong_fails_its_test(self, folder, was, is_):
        broken = packaged("alerts.yml").replace(was, is_)
        assert broken != packaged("alerts.yml")
        (folder / "alerts.yml").write_text(broken)
        assert promtool("test", "rules", folder / "alerts_test.yml").returncode == 1


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
