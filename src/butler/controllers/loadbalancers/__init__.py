"""Load-balancer addresses of tenants: as many as their Services need, and MetalLB kept in step.

    setup.py           puts all of it together
    controller.py      watches, and one reconcile
    look.py            a tenant during one reconcile
    steps.py           its steps: each is tried, and what goes wrong is told
    next_look.py       when to look again
    upkeep.py          what there is to do on a tenant
    publisher.py       telling a tenant's MetalLB which addresses it has
    draining.py        taking addresses back, without ever moving a Service
    deletions.py       what is said about allocations that were deleted in use
    allocations.py     the allocations, as the management cluster has them
    platform.py        the label on the Services of platform addons
    status_writer.py   writing the status, and when
    service_record.py  how long Services waited, and whether one lost its address
    states.py          what is remembered of a tenant between two looks, and which class changes it
    metrics.py

What is decided is in `butler.rules.loadbalancer`, and pure.
"""
