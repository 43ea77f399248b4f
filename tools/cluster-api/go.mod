// The modules whose custom resource definitions the tests install. Nothing is compiled and nothing is resolved: each
// module is downloaded by itself, at this version and with the hash in go.sum (tools/cluster_api_definitions.py).
// That some of them need a newer Cluster API than the one named here does not matter for their definitions.
module butler.invalid/tools/cluster-api

go 1.26.0

require (
	github.com/ionos-cloud/cluster-api-provider-proxmox v0.7.0
	github.com/nutanix-cloud-native/cluster-api-provider-nutanix v1.7.0
	sigs.k8s.io/cluster-api v1.10.10
	sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
	sigs.k8s.io/cluster-api-provider-azure v1.21.0
	sigs.k8s.io/cluster-api-provider-gcp v1.13.1
)
