"""Load-balancer addresses of tenants: as many as their Services need, and MetalLB kept in step.

    controller.py   watches, and one reconcile
    publishing.py   telling a tenant's MetalLB which addresses it has
    draining.py     taking addresses back, without ever moving a Service
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
    idleness.py     which addresses nobody needs any more
    status.py       what the TenantCluster's status says of it

    metrics.py, settings.py
"""
