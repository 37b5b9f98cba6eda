"""The real thing: Prometheus scrapes the exporter and evaluates the rules, and Alertmanager gets the alert."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest

from tests.health.export.fleet import free_port
from tests.health.export.test_packaged import dashboard_expressions
from tests.health.history.looks import host, sight, sweep
from wholestack.health.export.files import packaged
from wholestack.health.history.store import History

PROGRAMS = ("prometheus", "prometheus-alertmanager")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=f"not installed: {' and '.join(PROGRAMS)}"),
]
PATIENCE_S = 120.0


@contextmanager
def running(*command, log, **environment):
    """A program until the end of the block."""
    with open(log, "wb") as opened:
        process = subprocess.Popen([str(each) for each in command], stdout=opened, stderr=opened,
                                   env=os.environ | environment)  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def got(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def until(asked):
    """The first answer that is something."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = asked()
        except OSError:
            answer = None
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.2)


@pytest.fixture
def monitored(tmp_path):
    """An exporter of three hosts of which one fails, Prometheus, Alertmanager; how to ask the two."""
    history, now = tmp_path / "h.sqlite", time.time() / 3600
    with History(history, write=True) as opened:
        for ago in (3, 2, 1):
            rows = [host(name, sights=[sight(host=name)] if name == "b" else []) for name in ("a", "b", 'c"\\ü')]
            opened.add(sweep(now - ago / 6, *rows))
    exporter, prometheus, alertmanager = free_port(), free_port(), free_port()
    # Ten minutes of a real rule are too long to wait for.
    (tmp_path / "alerts.yml").write_text(packaged("alerts.yml").replace("for: 10m", "for: 1s"))
    (tmp_path / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n"
        f"rule_files: [{tmp_path}/alerts.yml]\n"
        f"alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{alertmanager}']}}]}}]}}\n"
        f"scrape_configs: [{{job_name: wholestack, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}]\n"
    )
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    with ExitStack() as stack:
        stack.enter_context(running(
            sys.executable, "-m", "wholestack", "health", "export", "serve", "--history", history, "--port", exporter,
            log=tmp_path / "exporter.log",
        ))  # fmt: skip
        stack.enter_context(running(
            "prometheus-alertmanager", f"--config.file={tmp_path}/alertmanager.yml", f"--storage.path={tmp_path}/am",
            f"--web.listen-address=127.0.0.1:{alertmanager}", "--cluster.listen-address=",
            log=tmp_path / "alertmanager.log",
        ))  # fmt: skip
        stack.enter_context(running(
            "prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
            f"--web.listen-address=127.0.0.1:{prometheus}", log=tmp_path / "prometheus.log",
        ))  # fmt: skip
        yield f"http://127.0.0.1:{prometheus}/api/v1", f"http://127.0.0.1:{alertmanager}/api/v2", history


def test_it_is_scraped_queried_and_its_alert_arrives(monitored):
    prometheus, alertmanager, history = monitored

    def query(expression):
        answer = got(f"{prometheus}/query?query={urllib.parse.quote(expression)}")
        assert answer["status"] == "success", expression
        return [(each["metric"], float(each["value"][1])) for each in answer["data"]["result"]]

    assert until(lambda: query("wholestack_health_export_timestamp_seconds")), "never scraped"
    assert query('up{job="wholestack"}')[0][1] == 1
    rows = query("wholestack_health_host_state")
    assert {(labels["host"], labels["state"]) for labels, _ in rows} == {
        ("a", "may_train"), ("b", "may_not"), ('c"\\ü', "may_train"),
    }  # fmt: skip
    for expression in dashboard_expressions():
        query(expression)
    assert query(dashboard_expressions()[0])[0][1] == 2  # may train, by the clock of Prometheus

    alerts = until(lambda: [each for each in got(f"{alertmanager}/alerts") if each["labels"].get("host") == "b"])
    assert alerts, "no alert arrived"
    assert alerts[0]["labels"]["alertname"] == "WholestackHostFailed"
    assert alerts[0]["annotations"]["summary"] == "b may not train: broken"

    history.rename(history.with_name("away"))
    assert until(lambda: [value for _, value in query("wholestack_health_source_up") if value == 0])
    assert query("wholestack_health_host_state") == []
