"""The command lines: butleradm for operators, butlerctl for tenants."""
