"""Kubeconfig files, read and edited as `kubectl config` does it.

Which file is edited, by kubectl's rules: an entry where it stands, anything new in the first file of KUBECONFIG that
exists. A file is edited as the YAML that it is, node by node, so that nothing in it is understood differently on the
way back: every other entry, unknown fields included, comes out as it went in. Comments do not survive, as with kubectl.
It is replaced in one step with the mode that it had (0600 when it is new), under the lock file that kubectl respects.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from butler.api.objects import Json

NEW_FILE = 0o600
TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Context:
    """A context, with what it leads to."""

    name: str
    cluster: str
    server: str
    user: str
    namespace: str
    file: Path
    current: bool

    @property
    def raw(self) -> Json:
        """As computed answers spell it."""
        return {
            "name": self.name,
            "current": self.current,
            "cluster": self.cluster,
            "server": self.server,
            "user": self.user,
            "namespace": self.namespace,
            "file": str(self.file),
        }


def files(given: str | None, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The files that count, in the order in which they do."""
    if given is not None:
        return [Path(given)]
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


class KubeconfigFiles:
    """Some files as one: for each name, and for the current context, the first file wins."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self._documents = {path: _read(path) for path in paths if path.exists()}

    @property
    def where(self) -> str:
        return ", ".join(map(str, self.paths))

    @property
    def exists(self) -> bool:
        return bool(self._documents)

    @property
    def current(self) -> str:
        found = (_text(root, "current-context") for root in self._documents.values())
        return next((name for name in found if name), "")

    def contexts(self) -> list[Context]:
        """All contexts, by name."""
        found: dict[str, Context] = {}
        current = self.current
        for path, root in self._documents.items():
            for name, entry in _entries(root, "contexts"):
                inner = _child(entry, "context")
                cluster = _text(inner, "cluster")
                server = _text(_child(self._find("clusters", cluster), "cluster"), "server")
                user, namespace = _text(inner, "user"), _text(inner, "namespace")
                made = Context(name, cluster, server, user, namespace or "default", path, name == current)
                found.setdefault(name, made)
        return [found[name] for name in sorted(found)]

    def servers_of(self, name: str) -> set[str]:
        """The servers that a context or a cluster entry of this name leads to."""
        found = {context.server for context in self.contexts() if context.name == name}
        found.add(_text(_child(self._find("clusters", name), "cluster"), "server"))
        return found - {""}

    def in_the_way(self, name: str, server: str) -> str:
        """What merging under this name would overwrite: an entry that is not this server's; "" if nothing."""
        known = self.servers_of(name)
        if known - {server}:
            return f"a context or cluster {name} already, for {', '.join(sorted(known))}"
        others = [context for context in self.contexts() if context.name != name]
        for kind in ("cluster", "user"):
            uses = [other.name for other in others if getattr(other, kind) == name and self._find(f"{kind}s", name)]
            if uses:
                return f"a {kind} {name} already, which is used by context {' and '.join(uses)}"
        if server not in known and self._find("users", name):
            return f"a user {name} already, and nothing says that its credentials are for {server}"
        return ""

    def _find(self, section: str, name: str) -> yaml.MappingNode | None:
        for root in self._documents.values():
            for known, entry in _entries(root, section):
                if known == name:
                    return entry
        return None

    # Editing.

    def use(self, name: str) -> Path:
        """Make a context the current one; the file that was edited."""
        path = self._first()
        with _edited(path) as root:
            _set(root, "current-context", name)
        return path

    def set_namespace(self, context: Context, namespace: str) -> Path:
        """Set the namespace of a context, in the file where it stands."""
        with _edited(context.file) as root:
            entry = next(found for name, found in _entries(root, "contexts") if name == context.name)
            inner = _child(entry, "context")
            if inner is None:
                inner = yaml.MappingNode("tag:yaml.org,2002:map", [])
                _put(entry, "context", inner)
            _set(inner, "namespace", namespace)
        return context.file

    def merge(self, name: str, cluster: Json, user: Json, *, use: bool) -> Path:
        """Add or renew a cluster, a user and a context of one name; the file that was edited."""
        path = self._first()
        with _edited(path) as root:
            if not root.value:
                _set(root, "apiVersion", "v1")
                _set(root, "kind", "Config")
            _put_entry(root, "clusters", name, _nodes({"name": name, "cluster": cluster}))
            _put_entry(root, "users", name, _nodes({"name": name, "user": user}))
            inner = _child(
                next((found for known, found in _entries(root, "contexts") if known == name), None), "context"
            )
            if isinstance(inner, yaml.MappingNode):  # with the namespace that the user chose there
                _set(inner, "cluster", name)
                _set(inner, "user", name)
            else:
                context = {"cluster": name, "user": name}
                _put_entry(root, "contexts", name, _nodes({"name": name, "context": context}))
            if use:
                _set(root, "current-context", name)
        return path

    def _first(self) -> Path:
        """Where kubectl writes what is new: the first file that exists, else the last one named."""
        return next(iter(self._documents), self.paths[-1])


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step."""
    _replace(path, text, NEW_FILE)


@contextmanager
def _edited(path: Path) -> Iterator[yaml.MappingNode]:
    """The root of a file, to be changed; it is written back when the block ends well."""
    target = path.resolve()  # a link stays a link
    with _locked(target):
        root = _read(target) if target.exists() else yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
        yield root
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else NEW_FILE
        _replace(target, str(yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True)), mode)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0))
    except FileExistsError:
        raise Failure(
            f"another process is editing {path}: try again, or remove {lock} if none is", Exit.CONFLICT
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _replace(path: Path, text: str, mode: int) -> None:
    try:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            os.fchmod(handle, mode)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(scratch).replace(path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> Failure:
    return Failure(f"{path} cannot be written ({error.strerror}): nothing was changed")


# Nodes of YAML. Scalars keep their text, whatever YAML would make of it.


def _read(path: Path) -> yaml.MappingNode:
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}", Exit.UNREACHABLE) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise Failure(f"{path} is not YAML: put it right by hand", Exit.UNREACHABLE) from None
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        return yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
    if not isinstance(root, yaml.MappingNode):
        raise Failure(f"{path} is not a kubeconfig: a mapping was expected", Exit.UNREACHABLE)
    return root


def _child(node: yaml.Node | None, key: str) -> Any:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _text(node: yaml.Node | None, key: str) -> str:
    found = _child(node, key)
    is_text = isinstance(found, yaml.ScalarNode) and found.tag != "tag:yaml.org,2002:null"
    return str(found.value) if is_text else ""


def _entries(root: yaml.Node, section: str) -> Iterator[tuple[str, yaml.MappingNode]]:
    found = _child(root, section)
    for entry in found.value if isinstance(found, yaml.SequenceNode) else ():
        if isinstance(entry, yaml.MappingNode) and (name := _text(entry, "name")):
            yield name, entry


def _put(node: yaml.MappingNode, key: str, value: yaml.Node) -> None:
    for index, (name, _) in enumerate(node.value):
        if name.value == key:
            node.value[index] = (name, value)
            return
    node.value.append((yaml.ScalarNode(TEXT, key), value))


def _set(node: yaml.MappingNode, key: str, text: str) -> None:
    _put(node, key, yaml.ScalarNode(TEXT, text))


def _put_entry(root: yaml.MappingNode, section: str, name: str, entry: yaml.Node) -> None:
    found = _child(root, section)
    if not isinstance(found, yaml.SequenceNode):
        found = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        _put(root, section, found)
    if not found.value:
        found.flow_style = False  # `[]` was written because nothing was in it
    for index, known in enumerate(found.value):
        if _text(known, "name") == name:
            found.value[index] = entry
            return
    found.value.append(entry)


def _nodes(value: Json) -> Any:
    return yaml.compose(yaml.safe_dump(value, sort_keys=False), Loader=yaml.SafeLoader)
