"""How a running program is put together: the controllers, Butler on one machine, the simulated world."""
