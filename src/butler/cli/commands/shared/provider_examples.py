"""Starting points for ProviderConfigs, one for each kind: what `butleradm provider create --example` prints.

The same objects as in the folder `examples/providers`, which an installed program does not have; a test holds the two
together.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = """\
# Change what is in here to what you have, and then: butleradm provider create -f THIS_FILE
# The credentials do not belong in it. Make the Secret from files, without a line break at their end:
#   kubectl create secret generic {kind} -n butler-system {keys}
"""
KEYS: Final = {
    "harvester": "--from-file=kubeconfig=harvester.kubeconfig",
    "nutanix": "--from-literal=username=butler --from-file=password=./password",
    "proxmox": "--from-literal=username='butler@pve!token' --from-file=password=./token-secret",
    "aws": "--from-file=accessKeyID=./access-key --from-file=secretAccessKey=./secret-key",
    "gcp": "--from-file=serviceAccountKey=./service-account.json",
    "azure": "--from-literal=clientID=ID --from-literal=tenantID=ID --from-file=clientSecret=./secret",
}
MANIFESTS: Final = {
    "harvester": """\
# Harvester. Machines get fixed addresses from one pool, load balancers from another.
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata:
  name: harvester-nodes
  namespace: butler-system
spec:
  cidr: "10.60.0.0/22"
  reserved:
    - cidr: "10.60.0.0/28"
      description: "Gateway and DNS"
  tenantAllocation:
    defaults:
      nodesPerTenant: 10 # the most machines that a cluster will ever have, see docs/providers.md
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata:
  name: harvester-services
  namespace: butler-system
spec:
  cidr: "10.60.4.0/24"
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: harvester
  namespace: butler-system
spec:
  provider: harvester
  credentialsRef:
    name: harvester
  harvester:
    networkName: default/vlan60
    namespace: tenants
    imageName: default/rocky-9.5
  network:
    mode: ipam
    gateway: 10.60.0.1
    dnsServers: [10.60.0.2, 10.60.0.3]
    poolRefs:
      - name: harvester-nodes
        types: [nodes]
      - name: harvester-services
        types: [loadbalancer]
    loadBalancer:
      allocationMode: elastic
      initialPoolSize: 2
      growthIncrement: 1
    quotaPerTenant:
      maxLoadBalancerIPs: 16
  limits:
    maxClustersPerTeam: 10
    maxNodesPerTeam: 100
""",
    "nutanix": """\
# Nutanix AHV. The subnet gives machines their addresses; the pool for nodes only counts them.
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata:
  name: nutanix-nodes
  namespace: butler-system
spec:
  cidr: "10.70.0.0/22"
  tenantAllocation: # exactly what the subnet's own IP pool hands out
    start: 10.70.1.0
    end: 10.70.3.254
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata:
  name: nutanix-services
  namespace: butler-system
spec:
  cidr: "10.70.4.0/24"
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: nutanix
  namespace: butler-system
spec:
  provider: nutanix
  credentialsRef:
    name: nutanix
  nutanix:
    endpoint: https://prism.example.com
    clusterUUID: 0005b0f1-8f43-a0f2-02b7-3cecef193712
    subnetUUID: c7938dc6-7659-453e-a688-e26020c68e43
    imageUUID: 6f4b7c4e-8d4b-4c52-9d2f-0a6a1f0f9a11
  network:
    mode: ipam
    gateway: 10.70.0.1
    dnsServers: [10.70.0.2]
    poolRefs:
      - name: nutanix-nodes
        types: [nodes]
      - name: nutanix-services
        types: [loadbalancer]
""",
    "proxmox": """\
# Proxmox VE. Machines get fixed addresses; a cluster may grow beyond its first block.
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata:
  name: proxmox-pool
  namespace: butler-system
spec:
  cidr: "10.80.0.0/22"
  reserved:
    - cidr: "10.80.0.0/28"
      description: "Gateway and DNS"
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: proxmox
  namespace: butler-system
spec:
  provider: proxmox
  credentialsRef:
    name: proxmox
  proxmox:
    endpoint: https://pve.example.com:8006
    nodes: [pve1, pve2, pve3]
    storage: ceph
    templateID: 9000
    vmidRange:
      start: 20000
      end: 29999
  network:
    mode: ipam
    subnet: vmbr0
    gateway: 10.80.0.1
    dnsServers: [10.80.0.2]
    poolRefs:
      - name: proxmox-pool
    loadBalancer:
      defaultPoolSize: 4
""",
    "aws": """\
# Amazon Web Services. The VPC gives machines their addresses.
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: aws
  namespace: butler-system
spec:
  provider: aws
  credentialsRef:
    name: aws
  aws:
    region: eu-central-1
    vpcID: vpc-0a1b2c3d4e5f60718
    subnetIDs:
      - subnet-0a1b2c3d4e5f60711
      - subnet-0a1b2c3d4e5f60712
    securityGroupIDs:
      - sg-0a1b2c3d4e5f60713
""",
    "gcp": """\
# Google Cloud. The VPC network gives machines their addresses.
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: gcp
  namespace: butler-system
spec:
  provider: gcp
  credentialsRef:
    name: gcp
  gcp:
    projectID: tenants-example
    region: europe-west3
    zone: europe-west3-b
    network: tenants
    subnetwork: machines
    imageFamily: rocky-linux-9-optimized-gcp
    imageProject: rocky-linux-cloud
    tags: [tenants]
""",
    "azure": """\
# Microsoft Azure. The virtual network gives machines their addresses. Only the payments team may use it.
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: azure
  namespace: butler-system
spec:
  provider: azure
  credentialsRef:
    name: azure
  azure:
    subscriptionID: 11111111-2222-3333-4444-555555555555
    resourceGroup: tenants
    location: westeurope
    vnetName: tenants
    subnetName: machines
    imageURN: resf:rockylinux-x86_64:9-base:9.5.20241118
  scope:
    type: team
    teamRef:
      name: payments
""",
}


def example(kind: str) -> str:
    """A ProviderConfig of this kind, with the pools that it names, to be edited."""
    return HEADER.format(kind=kind, keys=KEYS[kind]) + MANIFESTS[kind]
