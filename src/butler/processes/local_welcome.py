"""What `butleradm local up` says once everything is up: where things are, and what to try. Pure, but for `kubectl`."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from butler import __version__

if TYPE_CHECKING:
    from butler.local.control_plane import ControlPlane

LAST_WORDS: Final = """\
This control plane lives on one machine and is for trying out, development and tests.
Ctrl-C stops it and keeps the data."""
DEMO: Final = """\
A demo plays: clusters and Services come and go, and the pool grows. Addresses that a cluster was given in addition
go back after {grace:g} s unused. It touches only what has the label butler.butlerlabs.dev/demo."""


@dataclass(frozen=True, slots=True)
class ConsoleAddress:
    """Where the console is."""

    url: str
    link: str
    """Opens it once."""
    minutes: int = 10
    """How long the link is good."""
    built: bool = True
    """Whether there are pages to show; the API is served all the same."""


@dataclass(frozen=True, slots=True)
class WelcomeFacts:
    """What is there to be told of."""

    kubectl: str = "kubectl"
    controllers: bool = True
    world: bool = True
    console: ConsoleAddress | None = None
    demo_grace: float | None = None
    """Seconds after which added addresses go back, where the demo plays."""


def kubectl() -> str:
    """The machine's own where there is one, else the one that came with Butler."""
    return "kubectl" if shutil.which("kubectl") else str(Path(sys.executable).with_name("kubectl"))


def welcome(control_plane: ControlPlane, seconds: float, shown: WelcomeFacts) -> str:
    """What to know and what to try once it is up."""
    facts = "\n".join(f"  {name:<12} {value}" for name, value in _facts(control_plane, shown))
    steps = "\n".join(f"  {shown.kubectl} {line}" for line in _first_steps(shown))
    paragraphs = [
        f"Butler {__version__} is up on this machine (ready in {seconds:.1f} s).",
        facts,
        *_open_console(shown.console),
        "Try it in another terminal:",
        f"  export KUBECONFIG={control_plane.kubeconfig}\n{steps}",
        LAST_WORDS,
        *([] if shown.demo_grace is None else [DEMO.format(grace=shown.demo_grace)]),
    ]
    return "\n\n".join(paragraphs)


def _facts(control_plane: ControlPlane, shown: WelcomeFacts) -> list[tuple[str, object]]:
    working = "addresses, providers and tenant clusters"
    found: list[tuple[str, object]] = [("console", shown.console.url)] if shown.console else []
    return [
        *found,
        ("API server", control_plane.url),
        ("kubeconfig", control_plane.kubeconfig),
        ("data", control_plane.directory),
        ("controllers", working if shown.controllers else "none (butleradm controller run starts them)"),
        ("world", "stand-ins for Cluster API, Steward, machines, MetalLB and addons" if shown.world else "none"),
    ]


def _open_console(console: ConsoleAddress | None) -> list[str]:
    if console is None:
        return []
    if not console.built:
        return ["The console's pages are not built, so only its API is served: `make console` builds them."]
    good = f"It is good once, for {console.minutes} minutes; `butleradm server link` makes another."
    return [f"Open the console:\n\n  {console.link}\n\n{good}"]


def _first_steps(shown: WelcomeFacts) -> tuple[str, ...]:
    """What is there where something plays; eight clusters where controllers build them; else a look around."""
    everything = "get tenantclusters,networkpools --all-namespaces"
    if shown.demo_grace is not None:
        return (everything, "get ipallocations -n butler-system -l butler.butlerlabs.dev/network-pool=production-pool")
    if shown.controllers and shown.world:
        return ("apply -f examples/eight-tenants", everything)
    return ("api-resources --api-group=butler.butlerlabs.dev", "explain networkpool.spec")
