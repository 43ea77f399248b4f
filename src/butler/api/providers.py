"""The settings of each infrastructure provider, one block per provider, as they stand in a ProviderConfig."""

from enum import StrEnum
from typing import Annotated

from butler.api.schema import ListType, Part, Rule, about

URL = r"^https?://"


class Provider(StrEnum):
    """The platforms that Butler can put clusters on."""

    HARVESTER = "harvester"
    NUTANIX = "nutanix"
    PROXMOX = "proxmox"
    AZURE = "azure"
    AWS = "aws"
    GCP = "gcp"
    LOCAL = "local"


CLOUDS = (Provider.AWS, Provider.AZURE, Provider.GCP)
"""Providers that bring their own networking; Butler's address management does not apply to them."""

ShortText = Annotated[str, about("One entry.", min_length=1, max_length=253)]


class HarvesterSettings(Part):
    """Harvester HCI."""

    network_name: Annotated[
        str,
        about(
            "VM network that machines are attached to, as namespace/name.",
            pattern=r"^[a-z0-9-]+/[a-z0-9-]+$",
            max_length=253,
        ),
    ]
    namespace: Annotated[
        str, about("Harvester namespace that the virtual machines are created in.", min_length=1, max_length=63)
    ] = "default"
    endpoint: Annotated[
        str | None, about("URL of the Harvester API; taken from the kubeconfig when not given.", max_length=1024)
    ] = None
    image_name: Annotated[
        str | None, about("Image for machines that name none, as namespace/name.", max_length=253)
    ] = None
    storage_class_name: Annotated[str | None, about("Storage class for the disks of machines.", max_length=253)] = None


class NutanixSettings(Part):
    """Nutanix AHV."""

    endpoint: Annotated[str, about("URL of Prism Central.", pattern=URL, max_length=1024)]
    cluster_uuid: Annotated[str, about("UUID of the Prism Element cluster that runs the machines.", max_length=64)]
    subnet_uuid: Annotated[str, about("UUID of the subnet that machines are attached to.", max_length=64)]
    port: Annotated[int, about("Port of Prism Central.", minimum=1, maximum=65535)] = 9440
    insecure: Annotated[bool, about("Whether to accept any TLS certificate; for laboratories only.")] = False
    image_uuid: Annotated[str | None, about("UUID of the image for machines that name none.", max_length=64)] = None
    storage_container_uuid: Annotated[
        str | None, about("UUID of the storage container for the disks of machines.", max_length=64)
    ] = None


class VMIDRange(Part):
    """Numbers that Proxmox machines may get."""

    validations = (
        Rule(
            expression="self.start <= self.end",
            message="end must not be less than start",
            field_path=".end",
        ),
    )

    start: Annotated[int, about("First machine number.", minimum=100, maximum=999999999)]
    end: Annotated[int, about("Last machine number, itself included.", minimum=100, maximum=999999999)]


class ProxmoxSettings(Part):
    """Proxmox VE."""

    endpoint: Annotated[str, about("URL of the Proxmox API.", pattern=URL, max_length=1024)]
    nodes: Annotated[
        tuple[ShortText, ...],
        about("Proxmox nodes that machines may be placed on.", min_items=1, max_items=128, list_type=ListType.SET),
    ]
    storage: Annotated[str, about("Storage for the disks of machines.", min_length=1, max_length=253)]
    insecure: Annotated[bool, about("Whether to accept any TLS certificate; for laboratories only.")] = False
    template_id: Annotated[
        int | None, about("Number of the machine template for machines that name none.", minimum=100)
    ] = None
    vmid_range: Annotated[
        VMIDRange | None, about("Machine numbers that Butler may use; any free one when not given.")
    ] = None


class AWSSettings(Part):
    """Amazon Web Services."""

    region: Annotated[str, about("Region, such as eu-central-1.", min_length=1, max_length=64)]
    vpc_id: Annotated[str | None, about("VPC that machines are attached to.", max_length=64)] = None
    subnet_ids: Annotated[
        tuple[ShortText, ...],
        about("Subnets that machines may be placed in.", max_items=64, list_type=ListType.SET),
    ] = ()
    security_group_ids: Annotated[
        tuple[ShortText, ...],
        about("Security groups that machines get.", max_items=64, list_type=ListType.SET),
    ] = ()


class GCPSettings(Part):
    """Google Cloud Platform."""

    project_id: Annotated[str, about("Project that machines are created in.", min_length=1, max_length=64)]
    region: Annotated[str, about("Region, such as europe-west3.", min_length=1, max_length=64)]
    zone: Annotated[str | None, about("Zone of the machines; the region's zone a when not given.", max_length=64)] = (
        None
    )
    network: Annotated[str | None, about("VPC network that machines are attached to.", max_length=253)] = None
    subnetwork: Annotated[str | None, about("Subnetwork that machines are attached to.", max_length=253)] = None
    machine_type: Annotated[str | None, about("Machine type, such as n2-standard-4.", max_length=64)] = None
    image: Annotated[str | None, about("Image of the machines; goes before imageFamily.", max_length=512)] = None
    image_family: Annotated[str | None, about("Image family whose newest image machines get.", max_length=253)] = None
    image_project: Annotated[str | None, about("Project that holds the image.", max_length=64)] = None
    service_account: Annotated[str | None, about("Service account that machines run as.", max_length=253)] = None
    tags: Annotated[
        tuple[ShortText, ...],
        about("Network tags that machines get, for firewall rules.", max_items=64, list_type=ListType.SET),
    ] = ()


class AzureSettings(Part):
    """Microsoft Azure."""

    subscription_id: Annotated[str, about("Subscription that pays for the machines.", min_length=1, max_length=64)]
    resource_group: Annotated[str, about("Resource group that machines are created in.", min_length=1, max_length=90)]
    location: Annotated[str | None, about("Region, such as westeurope.", max_length=64)] = None
    vnet_name: Annotated[str | None, about("Virtual network that machines are attached to.", max_length=64)] = None
    subnet_name: Annotated[str | None, about("Subnet that machines are attached to.", max_length=80)] = None
    vm_size: Annotated[str | None, about("Machine size, such as Standard_D4s_v5.", max_length=64)] = None
    image_urn: Annotated[
        str | None,
        about("Image as publisher:offer:sku:version, or the id of a managed or gallery image.", max_length=1024),
    ] = None


class LocalSettings(Part):
    """Containers on the machine that Butler runs on."""

    kind_node_image: Annotated[
        str | None,
        about("Container image of the nodes; the one for the Kubernetes version when not given.", max_length=512),
    ] = None
