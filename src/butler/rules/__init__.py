"""Everything that is decided about Butler's kinds. Pure: controllers, admission, plans and reports call the same rules.

One folder a subject: pool, allocation, loadbalancer, tenant, provider. Rules import the kinds (`butler.api`) and the
arithmetic of addresses (`butler.ipam`), and nothing else.
"""
