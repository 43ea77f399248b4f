"""Parts of `make bench-ipam`; the modules bench_ipam_*.py beside this folder put them together."""
