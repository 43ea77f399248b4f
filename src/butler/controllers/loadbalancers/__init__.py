"""Load-balancer addresses of tenants: as many as their Services need, and MetalLB kept in step.

    controller.py   watches, and one reconcile
    steps.py        the steps of one look: each is tried, and what goes wrong is told
    upkeep.py       what there is to do on a tenant
    publishing.py   telling a tenant's MetalLB which addresses it has
    draining.py     taking addresses back, without ever moving a Service
    deletions.py    what is said about allocations that were deleted in use
    ledger.py       the allocations, as the management cluster has them
    platform.py     the label on the Services of platform addons
    telling.py      writing the status, and when
    service_record.py  how long Services waited, and whether one lost its address
    memory.py       what is remembered of a tenant between two looks

Decisions, all pure:

    demand.py       which Services wait for an address, and which addresses are spoken for
    survey.py       how a tenant's Services and its addresses stand to each other
    terms.py        what the provider and the cluster say about it
    growth.py       what to ask for, and from which pool
    foreign.py      which addresses of pools Services show without the tenant holding them
    idleness.py     which addresses nobody needs any more
    status.py       what the TenantCluster's status says of it

    metrics.py, settings.py
"""
