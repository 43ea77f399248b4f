"""`butlerctl cluster create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import HOME, ClusterAccess, CommandSession, Failure, run
from butler.cli.toolkit.terminal import say

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.cli.toolkit.output import Output

WORKERS = 3
SYSTEMS = ("rocky", "flatcar", "talos")


@click.command("create", short_help="Make a cluster, and show the addresses it would get.")
@click.argument("name", required=False)
@click.option(
    "-f", "--filename", "file", metavar="FILE", help="A TenantCluster in YAML or JSON to start from; - for stdin."
)
@click.option(
    "--provider",
    metavar="NAME",
    shell_complete=names_of("providerconfigs"),
    help="ProviderConfig.  [default: the one called default, or the only one]",
)
@click.option("--workers", type=click.IntRange(1, 5000), metavar="N", help=f"How many machines.  [default: {WORKERS}]")
@click.option("--kubernetes-version", metavar="V", help="Such as v1.33.2; needed, here or in the file.")
@click.option("--cpu", type=click.IntRange(1), metavar="N", help="CPUs of a worker.  [default: 4]")
@click.option("--memory", metavar="SIZE", help="Memory of a worker.  [default: 16Gi]")
@click.option("--disk", metavar="SIZE", help="Disk of a worker.  [default: 100Gi]")
@click.option("--os", "system", type=click.Choice(SYSTEMS), help="What workers run.  [default: rocky]")
@click.option("--image", metavar="IMAGE", help="Image to start workers from.  [default: the provider's]")
@click.option("--lb-size", type=click.IntRange(1), metavar="N", help="Load-balancer addresses to start with.")
@click.option("--lb-range", metavar="START-END", help="Exactly these load-balancer addresses, in use already.")
@click.option("--team", metavar="NAME", help="The team that owns it.")
@options.access(options.IN_PLACE)
@options.dry_run
@options.wait(900.0)
@options.output("table", "json", "yaml", "name")
def create(
    name: str | None,
    file: str | None,
    access: ClusterAccess,
    dry_run: str,
    wait: bool,
    timeout: float,
    output: Output,
    **given: Any,
) -> None:
    """Make a cluster, and show the addresses it would get.

    Before anything is written, the addresses that the cluster would get at this moment are shown, as Butler itself
    would decide; who asks in the meantime comes first. What could never work (a range outside of all pools, a provider
    of another team) is refused here; what only lacks room is made, and waits.

    Options go before what stands in FILE. With --wait, the command returns when the cluster is ready, and shows what
    it waits for meanwhile.

    \b
    Examples:
      butlerctl cluster create web --kubernetes-version v1.33.2 --workers 3 --wait
      butlerctl cluster create web -f web.yaml --dry-run=server
      butlerctl cluster create web --kubernetes-version v1.33.2 --dry-run=client > web.yaml
      butlerctl cluster create old --kubernetes-version v1.32.1 --lb-range 10.92.90.60-10.92.90.61
    """
    from butler.cli.toolkit.objects import IN_FILE, as_json, load_object
    from butler.cli.toolkit.output import done, structured
    from butler.kube.kinds import CLUSTERS

    body = manifest(name, file, given)

    async def work(session: CommandSession) -> None:
        from butler.cli.estate.address_preview import tell_preview

        meta = body["metadata"]
        meta["namespace"] = session.access.namespace or meta.get("namespace") or session.place
        cluster = load_object(CLUSTERS, body, IN_FILE).obj
        await tell_preview(session, cluster, new=True)
        if dry_run == "client":
            _show(body, output)
            return
        raw = await session.client.create(
            as_json(CLUSTERS), body, meta["namespace"], dry_run=dry_run == "server", field_validation="Strict"
        )
        made = load_object(CLUSTERS, raw)
        if output.format in ("json", "yaml"):
            structured(made.raw, output)
        elif output.format == "name":
            _show_name(made.name)
        else:
            done(CLUSTERS, made.name, "created", dry_run)
        if wait and dry_run == "none":
            from butler.cli.estate.cluster_progress import wait_until_ready

            await wait_until_ready(session, made.obj, timeout)
            say(f"butlerctl cluster kubeconfig {made.name} -n {meta['namespace']} gets you in.")

    run(access, work)


def _show(body: Json, output: Output) -> None:
    """What would be sent, so that it can be kept in a file."""
    from butler.cli.toolkit.output import Output as Shape
    from butler.cli.toolkit.output import structured

    if output.format == "name":
        _show_name(body["metadata"]["name"])
    else:
        structured(body, output if output.format == "json" else Shape("yaml"))


def _show_name(name: str) -> None:
    from butler.kube.kinds import CLUSTERS

    click.echo(f"tenantcluster.{CLUSTERS.group}/{name}")


def manifest(name: str | None, file: str | None, given: dict[str, Any]) -> Json:
    """The TenantCluster that the options and the file describe."""
    body = _from_file(file) if file else {}
    meta = dict(body.get("metadata") or {})
    if name and meta.get("name") not in (None, name):
        raise click.UsageError(f"the file is about {meta['name']}, and the command about {name}: leave one of them out")
    meta["name"] = name or meta.get("name")
    if not meta["name"]:
        raise click.UsageError("the cluster needs a name: butlerctl cluster create NAME")
    spec = dict(body.get("spec") or {})
    _fill(spec, given)
    if not spec.get("kubernetesVersion"):
        raise click.UsageError("which Kubernetes? Say it with --kubernetes-version, as in v1.33.2")
    from butler.kube.kinds import CLUSTERS

    return {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": meta, "spec": spec}


def _from_file(path: str) -> Json:
    from butler.cli.toolkit.documents import read_documents

    found = read_documents(path, ("TenantCluster",))
    if len(found) > 1:
        raise click.UsageError(f"{path} holds {len(found)} clusters: create them one by one, or with kubectl apply")
    return found[0]


def _fill(spec: Json, given: dict[str, Any]) -> None:
    """Write the options that were given over what the file says."""
    if given["kubernetes_version"]:
        spec["kubernetesVersion"] = _version(given["kubernetes_version"])
    if given["provider"]:
        namespace, slash, name = given["provider"].rpartition("/")
        spec["providerConfigRef"] = {"name": name, "namespace": namespace if slash else HOME}
    if given["team"]:
        spec["teamRef"] = {"name": given["team"]}
    workers = spec["workers"] = dict(spec.get("workers") or {})
    workers["replicas"] = given["workers"] or workers.get("replicas") or WORKERS
    shape = {"cpu": given["cpu"], "memory": given["memory"], "diskSize": given["disk"]}
    system = {"type": given["system"], "imageRef": given["image"]}
    _over(workers, "machineTemplate", shape)
    if any(system.values()):
        _over(workers.setdefault("machineTemplate", {}), "os", system)
    if given["lb_size"] and given["lb_range"]:
        raise click.UsageError("--lb-range already says how many addresses there are: give one of the two")
    if given["lb_size"]:
        _over(spec, "networking", {"lbPoolSize": given["lb_size"]})
    if given["lb_range"]:
        _over(spec, "networking", {"loadBalancerPool": _range(given["lb_range"])})


def _over(parent: Json, key: str, values: Json) -> None:
    said = {name: value for name, value in values.items() if value is not None}
    if said:
        parent[key] = {**(parent.get(key) or {}), **said}


def _version(text: str) -> str:
    from butler.rules.tenant.versions import Version

    if not text.startswith("v") or str(Version.read(text)) != text:
        raise click.UsageError(f"{text!r} is no version: write it as in v1.33.2")
    return text


def _range(text: str) -> Json:
    from butler.ipam.addresses import BadAddress, parse_range

    start, _, end = text.partition("-")
    try:
        parse_range(start.strip(), (end or start).strip())
    except BadAddress as error:
        raise Failure(f"--lb-range: {error}", Exit.USAGE) from None
    return {"start": start.strip(), "end": (end or start).strip()}
