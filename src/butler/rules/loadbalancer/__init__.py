"""How the load-balancer addresses of a tenant follow the demand of its Services. Pure."""
