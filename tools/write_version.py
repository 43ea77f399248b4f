"""Write the version of Butler into the chart, which has to repeat it: for `make generate`."""

from __future__ import annotations

import re
from pathlib import Path

from butler import __version__

CHART = Path(__file__).resolve().parents[1] / "charts" / "butler" / "Chart.yaml"


def with_version(chart: str, version: str) -> str:
    """The chart's description with both of its versions set."""
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {version}", chart, flags=re.MULTILINE)


if __name__ == "__main__":
    CHART.write_text(with_version(CHART.read_text(), __version__))
