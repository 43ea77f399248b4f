"""Full collections look at what is new; tried in a process of its own, because the collector belongs to the process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, weakref
from butler.processes.garbage import keep_collections_short

class Node:
    pass

now = 0.0
keep_collections_short(lambda: now)
kept = [Node() for _ in range(50_000)]
circle = Node(); circle.self = circle
gone = weakref.ref(circle); del circle
gc.collect()
assert gone() is None, "garbage is collected before the rest is frozen"
assert gc.get_freeze_count() > 50_000
assert len(gc.get_objects()) < 1_000, "and the next collection has little to look at"

held = weakref.ref(kept[7])
del kept[7]
assert held() is None, "what is frozen goes with its last reference"

late = weakref.ref(kept[8])
kept[8].self = kept[8]
del kept[8]
gc.collect()
assert late() is not None
now = 4000.0
gc.collect()
assert late() is None, "what became a circle after it was frozen goes within the hour"
assert gc.get_freeze_count() > 49_000
"""


def test_what_outlives_a_full_collection_is_left_out_of_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
