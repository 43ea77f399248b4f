"""TenantCluster: from a wish to a running cluster, and back.

settings.py    what an operator may set
provider.py    where a cluster goes, and whether it may go there
addresses.py   which IPAllocations it needs
versions.py    which Kubernetes each part runs next
addons.py      which TenantAddons it needs
seen.py        what Cluster API and Steward say of it
status.py      what its own status says
deletion.py    what stands between it and its end
live.py        views of the objects that make it up, and applying those that differ
building.py    the steps of bringing it up, teardown.py those of taking it down
controller.py  watches, and one reconcile
"""
