"""TenantCluster: from a wish to a running cluster, and back.

    controller.py     watches, and one reconcile
    building.py       the steps of bringing a cluster up
    teardown.py       the steps of taking it down

Decisions, all pure:

    provider.py       where a cluster goes, and whether it may go there
    wishes.py         which addresses it wants
    addresses.py      which IPAllocations it needs for that
    versions.py       which Kubernetes each part runs next
    addons.py         which TenantAddons it needs
    seen.py           what Cluster API and Steward say of it
    status.py         what its own status says
    deletion.py       what stands between it and its end
    blocked.py        how one of these says no

What they work with:

    views.py          the caches of Butler's own kinds
    live.py           views of the foreign objects that make up clusters, and applying those that differ
    credentials.py    providers' Secrets
    tenant_side.py    what is done on the tenant itself
    talos_workers.py  the configuration of Talos machines
    turnstile.py      addresses first, when many come at once
    status_writer.py  writing its status, with the events and metrics of it
    telling.py        what is told at once, and what can wait a moment
    metrics.py, settings.py
"""
