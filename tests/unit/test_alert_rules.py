"""The shipped alert rules and the page about them, held against the metrics that Butler really exposes.

Whether each rule fires when it should is shown by promtool (`make test-alerts`). What is held here every day is what
changes behind the back of a rule: a metric, label or reason that is renamed leaves an alert that never fires again.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import pytest
import yaml
from prometheus_client import CollectorRegistry

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import AllocationReason, PoolReason, ProviderReason, TenantClusterReason
from butler.api.tenantcluster import TenantClusterPhase
from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
from butler.controllers.networkpool import metrics as ipam
from butler.controllers.providerconfig.metrics import ProviderMetrics
from butler.controllers.tenantcluster.metrics import TenantMetrics
from butler.kube.metrics import Metrics
from pages import ROOT
from tools import helm

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = ROOT / "charts/butler"
RULES = sorted((CHART / "alerts").glob("*.rules.yaml"))
STORIES = sorted((ROOT / "tests/alerts").glob("*.test.yaml"))
PAGE = ROOT / "docs/monitoring.md"
SUFFIXES = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
KEYWORDS = {"by", "or", "and", "unless", "offset"}
KNOWN_VALUES: dict[str, Any] = {
    "phase": set(IPAllocationPhase) | set(TenantClusterPhase),
    "reason": set(AllocationReason) | set(PoolReason) | set(ProviderReason) | set(TenantClusterReason),
    "path": {"direct", "retried"},
    "result": set(get_args(ipam.Result)),
    "step": set(get_args(ipam.Step)),
    "why": set(get_args(ipam.Why)),
    "what": set(get_args(ipam.Inconsistency)),
    "outcome": set(get_args(ipam.Sweep)),
    "state": {"in_use", "idle"},
}


class Described(NamedTuple):
    """A metric as a page describes it."""

    type: str
    labels: tuple[str, ...]


def exposed() -> dict[str, Described]:
    """Every metric of the process, under the name that people use (a histogram's without its suffixes)."""
    registry = CollectorRegistry()
    Metrics(registry)
    ipam.IpamMetrics(registry)
    TenantMetrics(registry)
    ProviderMetrics(registry)
    LoadBalancerMetrics(registry)
    found = {}
    for collector in registry._collector_to_names:
        kind: str = collector._type  # type: ignore[attr-defined]
        name: str = collector._name  # type: ignore[attr-defined]
        found[name + "_total" * (kind == "counter")] = Described(kind, tuple(collector._labelnames))  # type: ignore[attr-defined]
    return found


def series() -> dict[str, set[str]]:
    """Every series that can be asked for, and its labels."""
    found = {}
    for name, (kind, labels) in exposed().items():
        for suffix in SUFFIXES[kind]:
            found[name.removesuffix("_total") + suffix] = {*labels, *(["le"] if suffix == "_bucket" else [])}
    return found


def alerts() -> list[dict[str, Any]]:
    groups = [group for file in RULES for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def title(rule: dict[str, Any]) -> str:
    return str(rule["alert"])


def used(expression: str) -> Iterator[tuple[str, str]]:
    """The series that an expression reads, each with its matchers."""
    bare = re.sub(r"\bby \([^)]*\)|\[[^\]]*\]|\boffset \w+", "", expression)
    for found in re.finditer(r"([a-z_]\w*)\s*(\{[^}]*\}|\()?", bare):
        if found[1] not in KEYWORDS and found[2] != "(":
            yield found[1], found[2] or ""


def check(expression: str) -> None:
    """Every series, label and label value in it is one that Butler has."""
    known, grouped = series(), set(re.findall(r"\w+", " ".join(re.findall(r"\bby \(([^)]*)\)", expression))))
    read = dict(used(expression))
    assert read
    assert set(read) <= set(known)
    for name, matchers in read.items():
        assert grouped <= known[name]
        for label, values in re.findall(r'(\w+)\s*[=!]~?\s*"([^"]*)"', matchers):
            assert label in known[name], f"{name} has no label {label}"
            if label in KNOWN_VALUES:
                assert set(values.split("|")) <= KNOWN_VALUES[label], f"nothing sets {label} to one of {values}"


@pytest.mark.parametrize("rule", alerts(), ids=title)
def test_an_alert_asks_for_what_is_there(rule: dict[str, Any]) -> None:
    check(rule["expr"])


def test_a_renamed_metric_label_or_reason_would_be_noticed() -> None:
    check('max by (pool) (butler_network_pool_ready{reason="Overlap"}) == 0')
    for wrong in (
        "butler_network_pool_free_ips > 0",
        "max by (tenant) (butler_network_pool_ready) == 0",
        'butler_network_pool_ready{state="x"} == 0',
        'butler_network_pool_ready{reason=~"Overlap|Overlapping"} == 0',
        "butler_ip_allocation_seconds > 1",
    ):
        with pytest.raises(AssertionError):
            check(wrong)


@pytest.mark.parametrize("rule", alerts(), ids=title)
def test_an_alert_says_what_happened_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith("Butler")
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    summary, description = rule["annotations"]["summary"], rule["annotations"]["description"]
    assert summary.endswith(".")
    assert "kubectl " in description
    for shown in re.findall(r"\$labels\.(\w+)", summary + description):
        assert shown in rule["expr"], f"{shown} is lost in the expression"


@pytest.mark.parametrize("rule", alerts(), ids=title)
def test_the_page_has_a_section_on_every_alert(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^### (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor == rule["alert"].lower()
    assert rule["alert"] in headings


def test_the_page_lists_the_alerts_as_they_are() -> None:
    rows = re.findall(r"^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \| ([\w ]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [
        (rule["alert"], rule["alert"].lower(), rule["labels"]["severity"], rule.get("for", "at once"))
        for rule in alerts()
    ]


def test_the_page_lists_all_metrics_and_no_others() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (gauge|counter|histogram) \| ([\w, ]*)\| \S", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len({name for name, _, _ in rows})
    written = {name: Described(kind, tuple(re.findall(r"\w+", labels))) for name, kind, labels in rows}
    assert written == exposed()


@pytest.mark.parametrize("question", re.findall(r"```promql\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_a_question_on_the_page_asks_for_what_is_there(question: str) -> None:
    check(question)


def test_every_value_of_a_label_is_explained_on_the_page() -> None:
    words = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    for label in ("path", "result", "step", "why", "what", "outcome", "state", "phase"):
        known = KNOWN_VALUES[label] - {IPAllocationPhase.ALLOCATED, IPAllocationPhase.RELEASED}
        assert known <= words, label


def test_every_alert_is_shown_to_fire_and_to_be_silent() -> None:
    firing, silent = set(), set()
    for story in (story for file in STORIES for story in yaml.safe_load(file.read_text())["tests"]):
        for fact in story.get("promql_expr_test", ()):
            asked = re.findall(r'alertname=~?"([^"]+)"', fact["expr"])
            if not fact["exp_samples"]:
                silent |= {
                    rule["alert"] for rule in alerts() if any(re.fullmatch(item, rule["alert"]) for item in asked)
                }
            firing |= {
                name
                for sample in fact["exp_samples"]
                for name in re.findall(r'alertname="(\w+)"', sample.get("labels", "") + fact["expr"])
            }
    names = {rule["alert"] for rule in alerts()}
    assert firing == names
    assert silent == names


def rendered(*options: str) -> list[dict[str, Any]]:
    command = [str(helm()), "template", "butler", str(CHART), "--namespace", "butler-system", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def test_the_chart_makes_a_prometheus_rule_of_each_of_these_very_files() -> None:
    asked = ("--set", "prometheusRule.enabled=true", "--set", "prometheusRule.labels.release=prometheus")
    made = {obj["metadata"]["name"]: obj for obj in rendered(*asked) if obj["kind"] == "PrometheusRule"}
    assert list(made) == [f"butler-{file.name.removesuffix('.rules.yaml')}" for file in RULES]
    for rule, file in zip(made.values(), RULES, strict=True):
        assert rule["apiVersion"] == "monitoring.coreos.com/v1"
        assert rule["metadata"]["namespace"] == "butler-system"
        assert rule["metadata"]["labels"]["release"] == "prometheus"
        assert rule["spec"] == yaml.safe_load(file.read_text())


def test_the_chart_makes_none_where_the_prometheus_operator_may_be_missing() -> None:
    assert [obj for obj in rendered() if obj["kind"] == "PrometheusRule"] == []
