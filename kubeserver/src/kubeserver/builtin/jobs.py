"""Job and CronJob: pods that end, once or by the clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    child,
    invalid,
    label_selector,
    not_negative,
    one_of,
    put_default,
    required,
    show_times,
    unchanged,
    unsupported,
)
from kubeserver.builtin.pod_defaults import default_template
from kubeserver.builtin.workloads import NOT_MATCHING, selects, template_errors
from kubeserver.resources import Strategy, World

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_MAX_INT32: Final = 2**31 - 1
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_CRON_FIELD: Final = re.compile(r"[0-9A-Za-z*/,?#-]+")
_CRON_NAMED: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def default_job(job: Json) -> None:
    spec = child(job, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32
    put_default(spec, "completionMode", "NonIndexed")
    if spec.get("suspend") is None:
        spec["suspend"] = False
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    put_default(spec, "podReplacementPolicy", replacement)
    if spec.get("manualSelector") is None:
        spec["manualSelector"] = False
    default_template(child(spec, "template"))
    labels = (spec["template"].get("metadata") or {}).get("labels")
    metadata = job.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    show_times(job.setdefault("status", {}), "lastProbeTime", "lastTransitionTime")


def prepare_job(_: World, job: Json) -> None:
    """A job selects its own pods by its uid, unless its author insists on a selector."""
    job["status"] = {}
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = child(child(spec["template"], "metadata"), "labels")
    inherits = (metadata.get("labels") or labels) == labels  # a job without labels has those of its template
    for key in ("job-name", "batch.kubernetes.io/job-name"):
        labels.setdefault(key, metadata.get("name", ""))
    for key in ("controller-uid", _UID_LABEL):
        labels.setdefault(key, metadata.get("uid", ""))
    child(child(spec, "selector"), "matchLabels").setdefault(_UID_LABEL, metadata.get("uid", ""))
    if inherits:
        metadata["labels"] = dict(labels)


def validate_job(job: Json) -> list[FieldError]:
    spec: Json = job.get("spec") or {}
    errors = _job_spec(spec, "spec")
    selector = spec.get("selector")
    errors += [required("spec.selector")] if selector is None else label_selector("spec.selector", selector)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not selects(selector, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", labels, NOT_MATCHING))
    return errors


def _job_spec(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in _COUNTS:
        errors += not_negative(f"{path}.{field}", spec.get(field))
    mode = spec.get("completionMode")
    errors += (
        []
        if mode in (None, "NonIndexed", "Indexed")
        else one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    )
    if mode == "Indexed" and spec.get("completions") is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if mode == "NonIndexed":
        errors += [
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    template = spec.get("template") or {}
    errors += template_errors(template, f"{path}.template")
    where, policy = f"{path}.template.spec.restartPolicy", (template.get("spec") or {}).get("restartPolicy")
    if policy in ("Always", "", None):
        errors.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(unsupported(where, policy, ("OnFailure", "Never")))
    return errors


def validate_job_update(job: Json, old: Json) -> list[FieldError]:
    new, before = job["spec"], old["spec"]
    errors: list[FieldError] = []
    fields = [
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ]
    if new.get("completionMode") != "Indexed":
        fields.insert(0, "completions")
    if not before.get("suspend"):
        fields.insert(2, "template")
    for field in fields:
        errors += unchanged(f"spec.{field}", new.get(field), before.get(field))
    return errors


def default_cron_job(job: Json) -> None:
    spec = child(job, "spec")
    put_default(spec, "concurrencyPolicy", "Allow")
    if spec.get("suspend") is None:
        spec["suspend"] = False
    if spec.get("successfulJobsHistoryLimit") is None:
        spec["successfulJobsHistoryLimit"] = 3
    if spec.get("failedJobsHistoryLimit") is None:
        spec["failedJobsHistoryLimit"] = 1
    template = child(spec, "jobTemplate")
    template.setdefault("metadata", {})
    default_template(child(child(template, "spec"), "template"))
    job.setdefault("status", {})


def _prepare_cron_job(_: World, job: Json) -> None:
    job["status"] = {}


def validate_cron_job(job: Json) -> list[FieldError]:
    spec: Json = job.get("spec") or {}
    schedule = spec.get("schedule") or ""
    errors: list[FieldError] = []
    if len(job["metadata"].get("name") or "") > 52:
        errors.append(invalid("metadata.name", job["metadata"]["name"], "must be no more than 52 characters"))
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        errors += _schedule(schedule)
    errors += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    policy = spec.get("concurrencyPolicy")
    if policy not in ("Allow", "Forbid", "Replace"):
        errors.append(unsupported("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace")))
    errors += _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += not_negative(f"spec.{field}", spec.get(field))
    return errors


def _schedule(schedule: str) -> list[FieldError]:
    if schedule in _CRON_NAMED or schedule.startswith("@every "):
        return []
    fields = schedule.split()
    if len(fields) != 5:
        shown = " ".join(fields)
        detail = f"expected exactly 5 fields, found {len(fields)}: [{shown}]"
        return [invalid("spec.schedule", schedule, detail)]
    bad = next((field for field in fields if not _CRON_FIELD.fullmatch(field)), None)
    return [] if bad is None else [invalid("spec.schedule", schedule, f"failed to parse int from {bad}")]


JOB: Final = Strategy(
    default=default_job,
    prepare_create=prepare_job,
    validate=validate_job,
    validate_update=validate_job_update,
    selectable={"status.successful": lambda job: str((job.get("status") or {}).get("succeeded") or 0)},
)
CRON_JOB: Final = Strategy(default=default_cron_job, prepare_create=_prepare_cron_job, validate=validate_cron_job)
