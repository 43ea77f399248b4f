"""What a ProviderConfig allows, who may use it, and what its status says. Pure."""
