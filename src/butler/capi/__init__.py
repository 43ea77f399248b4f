"""What Cluster API and Steward objects a TenantCluster needs. Pure: facts in, objects out, no I/O and no clock."""
