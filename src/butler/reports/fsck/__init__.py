"""Whether all that Butler knows about addresses is true: the books, and what is on the tenants. Pure.

    finding.py      what can be found, and what may be done about it
    holdings.py     who holds what
    pools.py        counters, intents, overlaps
    allocations.py  duplicates, places, contradictions, owners
    tenants.py      Services and nodes
    metallb.py      MetalLB's pools
    report.py       a look, two looks, and how they are told

Nothing is trusted that can be computed: counters are recounted by the allocator's own code, and orphans are what the
orphan sweep would call one. The caller checks twice, and reports only what it finds both times.
"""

from butler.reports.fsck.finding import MEANINGS, Code, FsckFinding, FsckSeverity, Repair, standing
from butler.reports.fsck.report import Report, UnreadableObject, concerning, finding_json, look_once, report_json
from butler.reports.fsck.tenants import NodeAddresses, TenantAnswers, tenants_to_ask

__all__ = [
    "MEANINGS",
    "Code",
    "FsckFinding",
    "FsckSeverity",
    "NodeAddresses",
    "Repair",
    "Report",
    "TenantAnswers",
    "UnreadableObject",
    "concerning",
    "finding_json",
    "look_once",
    "report_json",
    "standing",
    "tenants_to_ask",
]
