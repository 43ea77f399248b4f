"""`butleradm pool edit`: a pool as YAML in the person's own editor."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from butler.cli.commands.pool import pool_name
from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from butler.cli.toolkit.objects import LoadedObject
    from butler.cli.toolkit.output import Output

Json = dict[str, Any]
HEAD = """\
Pool {name}. Save and leave the editor to write it; lines above the first field that begin with # are dropped.
Nothing is written when nothing is changed, or when all of it is deleted."""
OVERTAKEN = """\
Another user changed {name} meanwhile, like this:
{difference}
Below is your edit on top of theirs. Delete this note to write it, or leave it as it is to give up."""
SHOWN = ("labels", "annotations")
"""What of an object's metadata people edit."""
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` keeps for itself: no part of what an operator edits."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of an edit: written, refused for a reason, or overtaken by another client's."""

    written: Json | None = None
    refused: str = ""
    overtaken: Json | None = None


@click.command(short_help="Edit a pool as YAML, in your editor.")
@pool_name
@options.access()
@options.wait()
@options.dry_run
@options.output("table", "json", "yaml", "name", "jsonpath")
def edit(access: ClusterAccess, name: str, wait: bool, timeout: float, dry_run: str, output: Output) -> None:
    """Edit a pool as YAML, in your editor.

    The editor is $KUBE_EDITOR, else $EDITOR, else vi. When an edit is refused, the editor opens again on your text
    with the reason above it; leave it unchanged to give up. An edit that would leave out addresses in use is refused
    with the names of those who hold them. If another user changed the pool meanwhile, you are shown what.
    Whatever happens, what you wrote is not lost: it stays in a file that is named at the end.

    \b
    Examples:
      butleradm pool edit vlan40
      EDITOR=nano butleradm pool edit vlan40
      butleradm pool edit vlan40 --dry-run=server
    """
    from butler.cli.commands.shared.pool_change import report, wait_ready

    made = _edit(access, name, dry_run)
    if made is None:
        return
    report(made, "edited", output, dry_run)
    if wait and dry_run == "none":
        run(access, lambda session: wait_ready(session, name, session.home, timeout))


def _edit(access: ClusterAccess, name: str, dry_run: str) -> Json | None:
    """Ask until an edit is written, or given up; None where nothing is changed."""
    from butler.cli.toolkit.editor import Editing
    from butler.cli.toolkit.terminal import say

    base = run(access, lambda session: _read(session, name))
    text, note, refused, code = _text(base), HEAD.format(name=name), "", Exit.FAILED
    just_refused: Json | None = None
    with Editing(f"butler-{name}") as editing:
        while True:
            typed = editing.ask(text, note)
            if typed is None and refused:
                raise Failure(f"nothing was changed: {refused}", code)
            text = typed or text
            wanted, why = _understood(text, base)
            if wanted is not None and wanted == just_refused:
                # An editor that is a script may change the note and nothing else, again and again.
                raise Failure(f"nothing was changed: {refused}", code)
            refused, code, just_refused = why, Exit.FAILED, None
            if wanted == _editable(base):
                say("nothing was changed")
                return None
            if wanted is not None:
                outcome = run(access, _writing(base, wanted, dry_run))
                if outcome.written is not None:
                    return outcome.written
                refused, just_refused = outcome.refused, wanted
                if outcome.overtaken is not None:
                    refused, code = f"another user changed {name} meanwhile", Exit.CONFLICT
                    note = OVERTAKEN.format(name=name, difference=_difference(base, outcome.overtaken))
                    text = _text(_applied(_editable(outcome.overtaken), _patch(_editable(base), wanted)))
                    base, just_refused = outcome.overtaken, None
                    continue
            note = f"{textwrap.fill(refused, 110, break_on_hyphens=False)}\nMend it, or leave it as it is to give up."


def _writing(base: Json, wanted: Json, dry_run: str) -> Callable[[CommandSession], Coroutine[Any, Any, _Outcome]]:
    return lambda session: _write(session, base, wanted, dry_run)


async def _read(session: CommandSession, name: str) -> Json:
    from butler.cli.toolkit.objects import read_one
    from butler.kube.kinds import POOLS

    return (await read_one(session, POOLS, name, session.home)).raw


def _editable(raw: Json) -> Json:
    """What of a pool people write: no status, and of its metadata only what is theirs."""
    meta = raw.get("metadata") or {}
    kept = {key: meta[key] for key in ("name", "namespace", *SHOWN) if meta.get(key)}
    if isinstance(kept.get("annotations"), dict):
        kept["annotations"] = {key: value for key, value in kept["annotations"].items() if key != APPLIED}
        kept = {key: value for key, value in kept.items() if value}
    return {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "metadata": kept, "spec": raw.get("spec")}


def _text(raw: Json) -> str:
    from butler.cli.toolkit.yaml_writer import dumped

    return dumped(_editable(raw))


def _understood(typed: str, base: Json) -> tuple[Json | None, str]:
    """What was written as an object, or why it is none of ours."""
    import yaml

    try:
        found = yaml.safe_load(typed)
    except yaml.YAMLError as error:
        return None, f"this is no YAML: {_yaml_words(error)}"
    if not isinstance(found, dict) or not isinstance(found.get("spec"), dict):
        return None, "a pool needs a spec: put it back"
    before, after = _editable(base), _editable(found) if isinstance(found.get("metadata"), dict) else {}
    for key in ("apiVersion", "kind"):
        if after.get(key) != before[key]:
            return None, f"{key} cannot be changed: put {before[key]} back"
    for key in ("name", "namespace"):
        if after["metadata"].get(key) != before["metadata"].get(key):
            return None, f"metadata.{key} cannot be changed: put {before['metadata'].get(key)} back"
    return after, ""


def _yaml_words(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}, not counting this note" if mark else ""
    return f"{getattr(error, 'problem', None) or error}{where}"


async def _write(session: CommandSession, base: Json, wanted: Json, dry_run: str) -> _Outcome:
    """Judge an edit and write it over the version that it was made from, or a later one with only another status."""
    from butler.cli.commands.shared.pool_change import ATTEMPTS
    from butler.cli.toolkit.objects import as_json, read_all
    from butler.kube.errors import ApiError, BadRequest, Conflict, Invalid
    from butler.kube.kinds import ALLOCATIONS, POOLS

    name = base["metadata"]["name"]
    for _ in range(ATTEMPTS):
        pools = await read_all(session, POOLS, session.home)
        now = next((pool for pool in pools if pool.raw["metadata"].get("uid") == base["metadata"].get("uid")), None)
        if now is None:
            raise Failure(f"{name} was deleted meanwhile, so nothing was changed", Exit.CONFLICT)
        if _editable(now.raw) != _editable(base):
            return _Outcome(overtaken=now.raw)
        allocations = await read_all(session, ALLOCATIONS, session.home)
        refused = _judged(now, wanted, [pool.obj for pool in pools], [allocation.obj for allocation in allocations])
        if refused:
            return _Outcome(refused=refused)
        if dry_run == "client":
            return _Outcome(written=wanted)
        version = {key: now.raw["metadata"][key] for key in ("uid", "resourceVersion")}
        patch = _patch(_editable(now.raw), wanted)
        patch["metadata"] = {**patch.get("metadata", {}), **version}
        try:
            made = await session.client.patch(
                as_json(POOLS), name, patch, session.home, dry_run=dry_run == "server", field_validation="Strict"
            )
        except Conflict:
            continue
        except (Invalid, BadRequest) as error:
            return _Outcome(refused=_words(error))
        except ApiError as error:
            if "admission webhook" not in error.message:
                raise
            return _Outcome(refused=_words(error))
        return _Outcome(written=made)
    raise Failure(f"{name} changes faster than it can be edited, so nothing was changed: try again", Exit.CONFLICT)


def _judged(now: LoadedObject[Any], wanted: Json, pools: list[Any], allocations: list[Any]) -> str:
    """Why an edit is refused, by the rules of admission; empty when it is not. Warnings are said."""
    from butler.cli.toolkit.objects import load_object
    from butler.cli.toolkit.terminal import say
    from butler.kube.kinds import POOLS
    from butler.rules.pool.admission import judge

    try:
        whole = {**now.raw, **wanted, "metadata": {**now.raw["metadata"], **wanted["metadata"]}}
        new = load_object(POOLS, whole, hint="")
    except Failure as failure:
        return failure.message
    verdict = judge(now.obj, new.obj, pools, allocations)
    for warning in verdict.warnings:
        say(f"Warning: {warning}")
    return "; ".join(f"{field}: {message}" for field, message in verdict.problems)


def _patch(before: Json, after: Json) -> Json:
    """The merge patch of an edit. It takes labels and annotations away one by one: there are some that it hides."""
    emptied: Json = {key: {} for key in SHOWN if key in before["metadata"]}
    from butler.api.codec import json_merge_patch

    return json_merge_patch(before, {**after, "metadata": {**emptied, **after["metadata"]}})


def _applied(to: Json, patch: Json) -> Json:
    """An object with a merge patch applied."""
    made = {key: value for key, value in to.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            made[key] = _applied(made.get(key) or {}, value)
        elif value is not None:
            made[key] = value
    return made


def _words(error: Any) -> str:
    causes = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in error.causes]
    return "; ".join(causes) or error.message


def _difference(before: Json, after: Json) -> str:
    lines = difflib.unified_diff(_text(before).splitlines(), _text(after).splitlines(), lineterm="", n=1)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))
