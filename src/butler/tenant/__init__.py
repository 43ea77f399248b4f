"""Talking to tenant clusters: their kubeconfigs, their Services, their MetalLB."""
