"""Which webhooks a request concerns: rules, selectors and conditions, decided without any I/O.

A configuration is compiled once per change, its conditions when they are first asked. The order of the answer is the
order of calls: configurations by name, webhooks as listed. Conditions are users' programs: they are asked on the event
loop as long as they take few steps, see `Deciding`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubeserver import patience
from kubeserver.cel import types as cel_types
from kubeserver.cel.costs import head_start, least_cost
from kubeserver.cel.evaluation import compile_closure
from kubeserver.cel.type_check import CompileError, compile_tree
from kubeserver.cel.values import CelError, CostError
from kubeserver.wire.selectors import EVERYTHING, LabelSelector, label_selector_from_json
from kubeserver.wire.status import ApiError, forbidden

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from kubeserver.access.authentication import User

Json = dict[str, Any]

_EXEMPT_GROUP: Final = "admissionregistration.k8s.io"  # a webhook must not be able to lock out its own removal
_VARIABLES: Final = ("object", "oldObject", "request", "authorizer")
_STEPS_TO_COMPILE: Final = 20  # for each character
_BUDGET: Final = 2_500_000  # of all conditions of a webhook together, as in Kubernetes
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


def _as_it_is(item: Json) -> Json:
    return item


@dataclass(slots=True, frozen=True)
class Served:
    """One way an object is served, and how to get it into that shape and back."""

    group: str
    version: str
    plural: str
    kind: str
    there: Callable[[Json], Json] = _as_it_is
    back: Callable[[Json], Json] = _as_it_is


@dataclass(slots=True)
class Admitted:
    """A write that webhooks are asked about."""

    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    served: Served
    user: User
    obj: Json | None = None
    old: Json | None = None
    name: str = ""
    namespace: str = ""
    subresource: str = ""
    options: Json | None = None
    dry_run: bool = False
    # other versions (or groups) the same objects are served in, for matchPolicy Equivalent
    equivalents: tuple[Served, ...] = ()
    namespace_labels: Callable[[], Mapping[str, str]] = dict
    default: Callable[[Json], None] = lambda _: None  # applied to what a mutating webhook returns
    apart: Callable[[Callable[[], WebhookCall | None]], Awaitable[WebhookCall | None]] = (
        asyncio.to_thread
    )  # where long work is done


@dataclass(slots=True, frozen=True)
class HookRule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str

    def matches(self, request: Admitted, served: Served) -> bool:
        return (
            self._scope(request, served)
            and _has(self.operations, request.operation)
            and _has(self.groups, served.group)
            and _has(self.versions, served.version)
            and any(
                plural in ("*", served.plural) and subresource in ("*", request.subresource)
                for plural, subresource in self.resources
            )
        )

    def _scope(self, request: Admitted, served: Served) -> bool:
        if self.scope == "*":
            return True
        of_cluster = not request.namespace or (served.group, served.plural) == ("", "namespaces")
        return of_cluster == (self.scope == "Cluster")


def _has(values: frozenset[str], value: str) -> bool:
    return "*" in values or value in values


class _Program(NamedTuple):
    run: Callable[[list[Any]], Any] | None
    start: int = 0
    problem: str = ""


@dataclass(slots=True, eq=False)
class MatchCondition:
    expression: str
    _program: _Program | None = None

    def holds(self, variables: list[Any]) -> tuple[bool | str, int]:
        """Whether it does, or why that cannot be decided, and what it cost."""
        if self._program is None:
            patience.spend(_STEPS_TO_COMPILE * len(self.expression))
            self._program = _compiled(self.expression)
        run, start, problem = self._program
        if run is None:
            return problem, 0
        ahead = head_start()
        frame = [start + ahead, *variables]
        outcome: bool | str
        try:
            outcome = run(frame) is True
        except CelError as error:
            if ahead and isinstance(error, CostError):
                raise patience.Costly from None
            outcome = f"expression '{self.expression}' resulted in error: {error}"
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            outcome = f"expression '{self.expression}' resulted in error: no such overload"
        cost = frame[0] - ahead
        patience.spend(cost)
        return outcome, cost


@dataclass(slots=True, frozen=True, eq=False)
class Hook:
    """One webhook of a configuration, ready to be matched and called."""

    configuration: str
    name: str
    client: Json
    rules: tuple[HookRule, ...]
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    conditions: tuple[MatchCondition, ...]
    ignores_failure: bool
    equivalent: bool
    timeout: int
    side_effects: str
    review_versions: tuple[str, ...]
    reinvoked: bool = False


@dataclass(slots=True, frozen=True)
class WebhookCall:
    """A webhook that is to be called, about an object in this shape."""

    hook: Hook
    served: Served


@dataclass(slots=True)
class HookTable:
    """The webhooks of one logical cluster and one kind of configuration; read again when `version` changes."""

    load: Callable[[], Iterable[Json]]
    version: Callable[[], int]
    _read_at: int | None = field(default=None, init=False)
    _hooks: tuple[Hook, ...] = field(default=(), init=False)

    def hooks(self) -> tuple[Hook, ...]:
        version = self.version()
        if version != self._read_at:
            self._hooks = compile_hooks(self.load())
            self._read_at = version
        return self._hooks


def compile_hooks(configurations: Iterable[Json]) -> tuple[Hook, ...]:
    ordered = sorted(configurations, key=lambda configuration: str(configuration["metadata"]["name"]))
    return tuple(_hook(str(obj["metadata"]["name"]), hook) for obj in ordered for hook in obj.get("webhooks") or ())


def _hook(configuration: str, hook: Json) -> Hook:
    return Hook(
        configuration=configuration,
        name=str(hook.get("name", "")),
        client=hook.get("clientConfig") or {},
        rules=tuple(_rule(rule) for rule in hook.get("rules") or ()),
        namespace_selector=_selector(hook.get("namespaceSelector")),
        object_selector=_selector(hook.get("objectSelector")),
        conditions=tuple(
            MatchCondition(str(match_condition.get("expression", "")).strip())
            for match_condition in hook.get("matchConditions") or ()
        ),
        ignores_failure=hook.get("failurePolicy") == "Ignore",
        equivalent=hook.get("matchPolicy", "Equivalent") == "Equivalent",
        timeout=int(hook.get("timeoutSeconds") or 10),
        side_effects=str(hook.get("sideEffects") or ""),
        review_versions=tuple(hook.get("admissionReviewVersions") or ()),
        reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
    )


def _rule(rule: Json) -> HookRule:
    resources = [resource.partition("/") for resource in rule.get("resources") or ()]
    return HookRule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        tuple((plural, subresource) for plural, _, subresource in resources),
        str(rule.get("scope") or "*"),
    )


def _selector(selector: Json | None) -> LabelSelector:
    return EVERYTHING if selector is None else label_selector_from_json(selector)


def _compiled(expression: str) -> _Program:
    types = dict.fromkeys(_VARIABLES, cel_types.DYN)
    try:
        tree, _ = compile_tree(expression, types)
    except CompileError as problem:
        return _Program(None, problem=f"compilation error: compilation failed: {problem}")
    return _Program(compile_closure(tree, list(_VARIABLES)), least_cost(tree))


class Deciding:
    """Which webhooks one write concerns: on the loop while few steps are taken, then beside it (`Admitted.apart`)."""

    def __init__(self) -> None:
        self._left = patience.STEPS_ON_THE_LOOP

    async def call(self, hook: Hook, request: Admitted) -> WebhookCall | None:
        """As `call_for`."""
        if self._left > 0:
            try:
                with patience.limited(self._left):
                    try:
                        return call_for(hook, request)
                    finally:
                        self._left = patience.left() or 0
            except patience.Costly:
                self._left = 0
        labels = request.namespace_labels()  # what the store has belongs to the loop
        settled = replace(request, namespace_labels=lambda: labels)
        return await request.apart(lambda: call_for(hook, settled))


def call_for(hook: Hook, request: Admitted) -> WebhookCall | None:
    """How to call a webhook about a request; None if it is not concerned. Raises what a condition refuses."""
    if request.served.group == _EXEMPT_GROUP:
        return None
    served = _matching(hook, request)
    if served is None or not _namespace_selected(hook, request) or not _object_selected(hook, request):
        return None
    if hook.conditions and not _conditions_hold(hook, request, served):
        return None
    return WebhookCall(hook, served)


def _matching(hook: Hook, request: Admitted) -> Served | None:
    if any(rule.matches(request, request.served) for rule in hook.rules):
        return request.served
    if hook.equivalent:
        for rule in hook.rules:
            for other in request.equivalents:
                if rule.matches(request, other):
                    return other
    return None


def _namespace_selected(hook: Hook, request: Admitted) -> bool:
    if hook.namespace_selector.everything:
        return True
    is_namespace = (request.served.group, request.served.plural) == ("", "namespaces")
    if is_namespace and not request.subresource and request.operation in ("CREATE", "UPDATE"):
        return hook.namespace_selector.matches(_labels(request.obj))
    if not request.namespace and not is_namespace:
        return True  # what belongs to no namespace is never exempt
    return hook.namespace_selector.matches(request.namespace_labels())


def _object_selected(hook: Hook, request: Admitted) -> bool:
    if hook.object_selector.everything:
        return True
    return any(obj is not None and hook.object_selector.matches(_labels(obj)) for obj in (request.obj, request.old))


def _labels(item: Json | None) -> Mapping[str, str]:
    labels: Mapping[str, str] = ((item or {}).get("metadata") or {}).get("labels") or {}
    return labels


def _conditions_hold(hook: Hook, request: Admitted, served: Served) -> bool:
    variables = [_shaped(request.obj, served), _shaped(request.old, served), request_json(request, served), {}]
    problems: list[str] = []
    left = _BUDGET
    for condition in hook.conditions:
        outcome, cost = condition.holds(variables)
        if outcome is False:
            return False
        if isinstance(outcome, str):
            problems.append(outcome)
        left -= cost
        if left < 0:
            problems.append(_NO_BUDGET)
            break
    if problems and not hook.ignores_failure:
        joined = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise forbidden(request.served.group, request.served.plural, request.name, joined)
    return not problems


def _shaped(item: Json | None, served: Served) -> Json | None:
    return None if item is None else served.there(item)


def request_json(request: Admitted, served: Served) -> Json:
    """The request as an AdmissionReview carries it, without uid and objects."""
    asked = request.served
    body: Json = {
        "kind": {"group": served.group, "version": served.version, "kind": served.kind},
        "resource": {"group": served.group, "version": served.version, "resource": served.plural},
        "subResource": request.subresource,
        "requestKind": {"group": asked.group, "version": asked.version, "kind": asked.kind},
        "requestResource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation,
        "userInfo": request.user.info(),
        "dryRun": request.dry_run,
        "options": request.options,
    }
    for key in ("subResource", "requestSubResource", "name", "namespace"):
        if not body[key]:
            del body[key]
    return body


def review_of(call: WebhookCall, request: Admitted, uid: str, version: str) -> Json:
    """The AdmissionReview to send."""
    body = {
        "uid": uid,
        **request_json(request, call.served),
        "object": _shaped(request.obj, call.served),
        "oldObject": _shaped(request.old, call.served),
    }
    return {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": body}


def refusal_of(hook_name: str, result: Json | None) -> ApiError:
    """The error for a request that a webhook does not allow: its own words, with who said them."""
    result = result or {}
    denied = f'admission webhook "{hook_name}" denied the request'
    message, reason = str(result.get("message") or ""), str(result.get("reason") or "")
    text = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
    code = result.get("code")
    return ApiError(
        code if isinstance(code, int) and code >= 400 else 400,
        reason,
        text,
        details=result.get("details") or None,
    )
