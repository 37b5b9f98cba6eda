"""What comes with the metrics, as files of the package: alert rules with their unit tests, and a dashboard."""

from importlib.resources import files
from typing import Literal

FileName = Literal["alerts.yml", "alerts_test.yml", "dashboard.json"]


def packaged(name: FileName) -> str:
    """The text of one of them.

    * ``alerts.yml``: rules for Prometheus.
    * ``alerts_test.yml``: for ``promtool test rules``, beside the rules.
    * ``dashboard.json``: for Grafana's import.
    """
    return (files("wholestack.health.export") / "packaged" / name).read_text(encoding="utf-8")
