"""The findings of a check as paragraphs: sentences have to be read whole, and a table would cut them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from butler.cli.toolkit.output import Showing, TableColumn
from butler.cli.toolkit.screen import section, sentence
from butler.cli.toolkit.terminal import painted
from butler.reports.fsck import FsckSeverity, finding_json
from butler.reports.fsck.holdings import counted

if TYPE_CHECKING:
    from butler.reports.fsck import FsckFinding, Report

COLOURS = {FsckSeverity.ERROR: "red", FsckSeverity.WARNING: "yellow", FsckSeverity.NOTE: "cyan"}
COLUMNS: list[TableColumn[FsckFinding]] = [
    TableColumn("Severity", lambda finding: finding.severity),
    TableColumn("Code", lambda finding: finding.code),
    TableColumn("Objects", lambda finding: ", ".join(map(str, finding.things))),
    TableColumn("What", lambda finding: finding.what),
    TableColumn("To do", lambda finding: finding.todo),
    TableColumn("Repair", lambda finding: finding.repair),
]
FINDINGS: Showing[FsckFinding] = Showing(COLUMNS, raw=finding_json, name=lambda finding: finding.code)


MOST_ALIKE = 3
"""How many findings of one kind are told in full; errors always are."""


def paragraphs(report: Report) -> str:
    """The findings, the worst first, and what they add up to; of many alike only the first are told."""
    told: list[str] = []
    seen: Counter[tuple[FsckSeverity, str]] = Counter()
    alike = Counter((finding.severity, str(finding.code)) for finding in report.findings)
    for finding in report.findings:
        kind = (finding.severity, str(finding.code))
        seen[kind] += 1
        if finding.severity is FsckSeverity.ERROR or seen[kind] <= MOST_ALIKE:
            told.append(_paragraph(finding))
        elif seen[kind] == alike[kind]:
            told.append(sentence(f"{kind[1]}: {alike[kind] - MOST_ALIKE} more of this kind; -o wide lists all"))
    return "\n\n".join([*told, _summary(report)])


def _paragraph(finding: FsckFinding) -> str:
    title = f"{painted(finding.severity.upper(), fg=COLOURS[finding.severity])} {finding.code}"
    lines = [*(str(thing) for thing in finding.things), finding.what, f"To do: {finding.todo}"]
    return section(title, "\n".join(map(sentence, lines)))


def _summary(report: Report) -> str:
    looked = ", ".join(
        [counted(report.pools, "pool"), counted(report.allocations, "allocation"), counted(report.tenants, "tenant")]
    )
    counts = report.counts
    found = ", ".join(counted(counts[severity], str(severity)) for severity in FsckSeverity if counts[severity])
    clean = "Clean" if not found else f"Clean, with {found}"
    verdict = f"{clean}: {looked}." if report.is_clean else f"Found {found} in {looked}."
    return sentence(verdict + "".join(f" {text[0].upper()}{text[1:]}." for text in report.not_asked))
