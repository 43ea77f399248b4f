"""The custom resources: one module per kind, plain typed structs, no I/O.

Start with `networkpool` or `ipallocation`; each reads as the page an administrator gets from `kubectl explain`,
because that page is generated from it. `meta` has the types that all kinds share, `labels` every name that is
written into objects, `conditions` and `codec` the few verbs. `crd` and `reference` turn the types into the CRDs
of the chart and into docs/reference; `kinds` lists what they walk.
"""

GROUP = "butler.butlerlabs.dev"
VERSION = "v1alpha1"
API_VERSION = "butler.butlerlabs.dev/v1alpha1"

HOME_NAMESPACE = "butler-system"
"""Where NetworkPools, IPAllocations, ProviderConfigs and the controllers live."""
