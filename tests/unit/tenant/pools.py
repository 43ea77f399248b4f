"""MetalLB's address pools as a tenant's API server may have them."""

from typing import Any

from butler.ipam.addresses import Range, parse_range
from butler.tenant.metallb import address_pool

Json = dict[str, Any]
IPAM = "butler-controller/ipam"
DRAINED_BY = "butler.butlerlabs.dev/drained-by"
A = "10.40.1.0-10.40.1.7"
B = "10.40.1.8-10.40.1.15"


def ranges(*texts: str) -> list[Range]:
    return [parse_range(*text.split("-"))[1] for text in texts]


def spec_of(*texts: str, **fields: bool) -> Json:
    return {"addresses": list(texts), "autoAssign": True, "avoidBuggyIPs": False, **fields}


def live(spec: Any, **owned: str) -> Json:
    """An object as the server has it, with the manager of each field of its spec."""
    managers = [
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {f"f:{field}": {}}}}
        for field, manager in owned.items()
    ]
    wanted = address_pool([])
    return {"metadata": {**wanted["metadata"], "uid": "u", "managedFields": managers}, "spec": spec}
