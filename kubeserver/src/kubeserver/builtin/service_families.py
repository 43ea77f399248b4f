"""The IP families of a Service: which it has, which it may change to, and how they fit its cluster IPs.

The cluster is dual-stack with IPv4 first. What a Service leaves open is completed from what it says: families from
addresses, a policy from the one it had. Nothing here looks at other Services; giving out addresses is
`service_addresses`.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from kubeserver.builtin.checks import duplicate, invalid, ip_address, one_of, required
from kubeserver.wire.status import FieldError
from kubeserver.wire.status import invalid as refusal

Json = dict[str, Any]

FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def is_headless(spec: Json) -> bool:
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return len(addresses) == 1 and addresses[0] == "None"


def needs_cluster_ip(spec: Json) -> bool:
    return spec.get("type") != "ExternalName"


def _family(address: str) -> str:
    return f"IPv{ipaddress.ip_address(address).version}"


def complete_families(spec: Json, before: Json | None, name: str) -> None:
    """Which families and policy the Service has, from what it says of either and of its addresses."""
    if not needs_cluster_ip(spec) or _still_prefers_two(spec, before):
        return
    selectorless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        kept = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if selectorless else "SingleStack")
    refuse(cluster_ip_errors(spec), name)
    policy = spec["ipFamilyPolicy"]
    errors = _released(spec, before, policy) if before is not None else []
    refuse(errors + _stack_errors(spec, policy), name)
    families = [*(spec.get("ipFamilies") or ())]
    unnamed = (spec.get("clusterIPs") or ())[len(families) :]
    families += [_family(address) for address in unnamed if address != "None"]
    families = families or [FAMILIES[0]]
    if len(families) == 1 and policy != "SingleStack":
        families += [family for family in FAMILIES if family not in families]
    spec["ipFamilies"] = families


def _still_prefers_two(spec: Json, before: Json | None) -> bool:
    """A Service that takes what the cluster has is neither given nor robbed of a family by a change of other things."""
    if before is None:
        return False
    if {spec.get("ipFamilyPolicy"), before.get("ipFamilyPolicy") or "PreferDualStack"} != {"PreferDualStack"}:
        return False
    return spec.get("type") == before.get("type") and all(
        _same(spec, before, field) for field in ("clusterIPs", "ipFamilies")
    )


def _same(spec: Json, before: Json, field: str) -> bool:
    return (spec.get(field) or []) == (before.get(field) or [])


def _released(spec: Json, before: Json, policy: str) -> list[FieldError]:
    """Give the second address and family back where that is what SingleStack means; else what it would take."""
    errors = []
    for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        values, had = spec.get(field) or [], before.get(field) or []
        if policy == "SingleStack":
            if values == had:
                spec[field] = values[:1]
        elif len(had) == 2 and len(values) == 1:
            detail = f"must be 'SingleStack' to release the secondary {what}"
            errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return errors


def _stack_errors(spec: Json, policy: str) -> list[FieldError]:
    if policy != "SingleStack":
        return []
    detail = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    return [
        invalid("spec.ipFamilyPolicy", policy, detail.format(what))
        for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(field) or ()) == 2
    ]


def cluster_ip_errors(spec: Json) -> list[FieldError]:
    """What is wrong with clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy as they stand."""
    if not needs_cluster_ip(spec):
        return []
    addresses = spec.get("clusterIPs") or []
    errors: list[FieldError] = []
    path = "spec.clusterIPs"
    if spec.get("clusterIP"):
        if not addresses:
            errors.append(required(path))
        elif addresses[0] != spec["clusterIP"]:
            errors.append(invalid(path, addresses, "first value must match `clusterIP`"))
    elif addresses:
        errors.append(invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    families = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        errors += one_of(f"spec.ipFamilies[{index}]", family, FAMILIES)
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    if spec.get("ipFamilyPolicy") is not None:
        errors += one_of("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _POLICIES)
    return errors + _address_errors(path, addresses, families)


def _address_errors(path: str, addresses: list[str], families: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    bad = False
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                bad = True
                errors.append(invalid(path, addresses, "'None' must be the first and only value"))
            continue
        found = ip_address(f"{path}[{index}]", address)
        bad = bad or bool(found)
        errors += found
    if len(addresses) > 2:
        errors.append(invalid(path, addresses, "may only hold up to 2 values"))
    if bad or addresses == ["None"]:
        return errors
    versions = [_family(address) for address in addresses]
    if len(versions) > 1 and len(set(versions)) < len(versions):
        errors.append(invalid(path, addresses, "may specify no more than one IP for each IP family"))
    for index, (address, version) in enumerate(zip(addresses, versions, strict=True)):
        if index < len(families) and families[index] in FAMILIES and version != families[index]:
            detail = f"expected an {families[index]} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", address, detail))
    return errors


def change_errors(new: Json, old: Json) -> list[FieldError]:
    """What a change may not do to the addresses and families a Service has."""
    if not needs_cluster_ip(new) or not needs_cluster_ip(old):
        return []
    errors: list[FieldError] = []
    if not (is_headless(new) and is_headless(old)):
        errors += _moved(new, old, "clusterIPs", "clusterIP")
    if not is_headless(new) and not is_headless(old):
        errors += _moved(new, old, "ipFamilies", "ipFamily")
    return errors


def _moved(new: Json, old: Json, field: str, one: str) -> list[FieldError]:
    """The second of two may come, and go with SingleStack; the first stays, and neither is exchanged."""
    now, before = new.get(field) or [], old.get(field) or []
    path = f"spec.{field}"
    if before and not now:
        return [invalid(f"{path}[0]", now, f"primary {one} can not be unset")]
    if len(now) == len(before):
        # Kubernetes speaks of the first family whichever it is.
        places = [index for index, value in enumerate(before) if now[index] != value]
        return [
            invalid(f"{path}[{index if field == 'clusterIPs' else 0}]", now, "may not change once set")
            for index in places
        ]
    errors = []
    if before and now[0] != before[0]:
        errors.append(invalid(f"{path}[0]", new.get("clusterIPs"), "may not change once set"))
    if len(now) < len(before) and new.get("ipFamilyPolicy") != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {one}"
        errors.append(invalid("spec.ipFamilyPolicy", new.get("ipFamilyPolicy"), detail))
    return errors


def refuse(errors: list[FieldError], name: str) -> None:
    if errors:
        raise refusal("", "Service", name, errors)
