"""ProviderConfig: whether clusters can be put on an infrastructure, and how many more.

`pools` and `status` decide and are pure; `secrets` follows the Secrets that are named; `inspection` reads them and
asks the providers; `controller` puts it together and writes.
"""
