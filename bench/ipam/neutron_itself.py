"""Neutron's own code in the place of its recipe: `--real-neutron`.

The `neutron` wheel brings about a hundred packages, too much for our own environment. So it gets one of its own in
the cache, and a process there, which is handed the records and times `SubnetAllocator._get_available_prefix_list`,
the part of a decision that is not database work. The database is replaced by a list, in Neutron's favour.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from build_kubernetes import cache_dir

from ipam.contenders import networks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.ipam.addresses import Range

VERSION = "29.0.0"
NAME = f"neutron {VERSION}"

WORKER = """
import json, statistics, sys, time, types
from neutron.ipam.subnet_alloc import SubnetAllocator

class OverAList(SubnetAllocator):
    def __init__(self, prefixes, cidrs):
        self._subnetpool = types.SimpleNamespace(prefixes=[types.SimpleNamespace(cidr=each) for each in prefixes])
        self._cidrs = cidrs
    def _get_allocated_cidrs(self):
        return iter(self._cidrs)

work = json.load(sys.stdin)
allocator = OverAList(work["prefixes"], work["cidrs"])
spent, ends = [], time.perf_counter() + work["seconds"]
while not spent or time.perf_counter() < ends:
    began = time.perf_counter()
    found = allocator._get_available_prefix_list()
    spent.append(time.perf_counter() - began)
free = sum(each.size for each in found)
json.dump({"median": statistics.median(spent), "free": free}, sys.stdout)
"""


def python() -> Path:
    """The interpreter that has Neutron, installed first where it is missing."""
    folder = cache_dir() / f"neutron-{VERSION}"
    found: Path = folder / "bin/python"
    if not (folder / "complete").exists():
        uv = str(Path(sys.executable).with_name("uv"))
        print(f"installing {NAME} and what it needs into {folder} (once)", file=sys.stderr, flush=True)
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], check=True)
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", str(found), f"neutron=={VERSION}"], check=True
        )  # fmt: skip
        (folder / "complete").touch()
    return found


def seconds_per_decision(pool: Range, taken: Sequence[Range], seconds: float) -> float:
    """The median time in which Neutron lists what is free of a pool; checked by the number of addresses it finds."""
    work = {
        "prefixes": [str(item) for item in networks_of(pool)],
        "cidrs": [str(item) for block in taken for item in networks_of(block)],
        "seconds": seconds,
    }
    answer = subprocess.run(
        [str(python()), "-W", "ignore", "-c", WORKER],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(answer.stdout)
    assert found["free"] == pool.size - sum(block.size for block in taken), "Neutron counts other addresses as free"
    return float(found["median"])
