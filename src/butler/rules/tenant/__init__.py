"""What a TenantCluster needs next, which addresses it asks for, and what its status says. Pure."""
