"""IPAllocations: finalizer, owner, release, and the sweep for orphans."""
