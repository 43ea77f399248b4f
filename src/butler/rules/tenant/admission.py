"""The rules for TenantClusters that concern their author. Pure: plain values in, a verdict out.

The controllers keep the same rules about teams and providers by themselves; here they are told while the author is
looking. Only the author's own rights are asked about nowhere else: afterwards it is not known who wrote what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.labels import Annotation, Label
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.ipam.layout import FieldProblem
from butler.rules.admission_verdict import AdmissionVerdict
from butler.rules.author_rights import NAMESPACES, Right, resource_name
from butler.rules.provider.placement import admits, may_be_named, named_provider, not_usable, wrong_team

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.objects import Key

FORCE_DELETE: Final = "forcedelete"
"""The verb on tenantclusters that lets a person vouch for machines being gone."""
_CLUSTERS: Final = resource_name(TenantCluster)
_PROVIDERS: Final = resource_name(ProviderConfig)


def new_provider(old: TenantCluster | None, new: TenantCluster, home: str) -> Key | None:
    """The ProviderConfig that a cluster names and did not name before."""
    named = named_provider(new, home)
    return None if old is not None and named_provider(old, home) == named else named


def judge(
    old: TenantCluster | None,
    new: TenantCluster,
    namespace: str,
    team: str,
    home: str,
    provider: ProviderConfig | None,
) -> AdmissionVerdict:
    """Whether a cluster may be written; `team` is that of its namespace, `provider` what `new_provider` led to."""
    problems, warnings = [], []
    if old is None or old.spec.team_ref != new.spec.team_ref:
        if wrong := wrong_team(new, namespace, team):
            problems.append(FieldProblem("spec.teamRef.name", wrong))
        elif new.spec.team_ref is not None and not team:
            warnings.append(
                f"spec.teamRef has no effect: namespace {namespace} belongs to no team until a platform administrator"
                " labels it"
            )
    named = new_provider(old, new, home)
    if named is not None:
        said = not_usable(named, namespace, team, home)
        if not may_be_named(named, namespace, home):
            problems.append(FieldProblem("spec.providerConfigRef", said))
        elif provider is None or not admits(provider, team):
            # In the same words whether it is missing or not for this team. It may come later, so it is no refusal.
            warnings.append(f"spec.providerConfigRef: {said}")
    return AdmissionVerdict(tuple(problems), tuple(warnings))


def rights(old: TenantCluster | None, new: TenantCluster, namespace: str, home: str) -> Iterator[Right]:
    """What the author of a cluster must be allowed to do."""
    named = new_provider(old, new, home)
    # Those of the home namespace say themselves, by their scope, whom they are for.
    if named is not None and named.namespace == namespace != home:
        why_not = (
            f"spec.providerConfigRef: you may not read ProviderConfig {named}, and so build nothing with its"
            " credentials: name another, or ask an administrator who may to create the cluster"
        )
        yield Right("get", _PROVIDERS, namespace, named.name, why_not)
    before = old.metadata.annotations.get(Annotation.FORCE_DELETE) if old is not None else None
    after = new.metadata.annotations.get(Annotation.FORCE_DELETE)
    if after is not None and after != before:
        why_not = (
            f"annotation {Annotation.FORCE_DELETE} releases addresses of machines that may still run: it needs the verb"
            f" {FORCE_DELETE} on tenantclusters in namespace {namespace}, which platform administrators have"
        )
        yield Right(FORCE_DELETE, _CLUSTERS, namespace, new.metadata.name, why_not)


def right_to_change_team(namespace: str) -> Right:
    """What the author must be allowed to do who puts a namespace into another team.

    Asked outside of all namespaces: a role that is bound in the namespace alone, such as cluster-admin by a
    RoleBinding, covers the Namespace itself, and its holder would choose whose providers and limits apply.
    """
    why_not = (
        f"label {Label.TEAM} says whose namespace {namespace} is: to change it needs the right to patch namespaces in"
        " the whole cluster, which platform administrators have"
    )
    return Right("patch", NAMESPACES, "", namespace, why_not)
