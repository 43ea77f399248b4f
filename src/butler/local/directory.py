"""Which files Butler keeps in the data directory of its embedded control plane."""

from __future__ import annotations

from typing import Final

from kubeserver.directory import FILES

AUDIT_FILE: Final = "audit.log"
"""What people did in the console, a line of JSON each."""
AUDIT_FILES_KEPT: Final = 4  # older ones, of ten megabytes each
AUDIT_FILES: Final = (AUDIT_FILE, *(f"{AUDIT_FILE}.{number}" for number in range(1, AUDIT_FILES_KEPT + 1)))
OURS: Final = (*FILES, *AUDIT_FILES)
"""All that Butler and its API server put into the directory."""
