"""What a rule may cost at worst, before any object comes.

Kubernetes refuses definitions whose rules could take too long on the largest object their schema allows, and so do
we, by the same count. The estimate walks the checked tree with its macros written out (`expansion.py`) and sums up:
one unit for a name or a field, the prices of calls (`estimated_calls.py`), and for a loop its rounds times what one
costs. How many rounds follows from sizes, which come from literals, from the schema (`extents.py`) along the path of
fields that leads to a value, or from what made the value; an unknown size is the largest number there is.

Where Kubernetes is wrong about a size, so are we: the first name of a path is skipped without a look at it, so that
the items of a list that was made on the way count as large as `self`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kubeserver.cel.amounts import MOST, UNKNOWN, Size, exactly, plus, times
from kubeserver.cel.estimated_calls import Operand, price
from kubeserver.cel.expansion import Binding, Comprehension, expanded
from kubeserver.cel.syntax import Call, ListLiteral, Literal, MapLiteral, Name, Node, Select

if TYPE_CHECKING:
    from kubeserver.cel import types as t
    from kubeserver.cel.extents import Extent

Path = tuple[str, ...]

_NEW_LIST: Final = 10
_NEW_MAP: Final = 30
_SCALARS: Final = frozenset({"bool", "int", "uint", "double", "timestamp", "duration"})
_RECORDS: Final = frozenset({"map", "object", "A", "B"})


def estimated_cost(tree: Node, extent: Extent) -> int:
    """The most that evaluating a checked tree may cost; `extent` is that of `self`."""
    return _Estimate(extent).cost(expanded(tree))


class _Entry(NamedTuple):
    """The sizes of what is in a list or map that was made by the expression."""

    container: str
    key: Size
    value: Size

    def joined(self, other: _Entry | None) -> _Entry | None:
        if other is None:
            return None
        return _Entry(self.container, self.key | other.key, self.value | other.value)


@dataclass(slots=True, frozen=True)
class _Variable:
    path: Path
    size: Size | None
    entry: _Entry | None = None


class _Estimate:
    """One walk. Facts about nodes are kept by identity; the tree outlives the walk."""

    def __init__(self, extent: Extent) -> None:
        self._extent = extent
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entry] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def cost(self, node: Node) -> int:
        if isinstance(node, Literal):
            return 0
        if isinstance(node, Name):
            variable = self._variable(node)
            self._paths[id(node)] = (node.name,) if variable is None else variable.path
            return 1
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, Binding):
            return self._binding(node)
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _select(self, node: Select) -> int:
        operand = self.cost(node.operand)
        if node.test:
            return operand
        self._paths[id(node)] = (*self._path(node.operand), node.name)
        return plus(operand, 1) if node.operand.type.kind in _RECORDS else operand

    def _call(self, node: Call) -> int:
        nodes = [*([] if node.target is None else [node.target]), *node.arguments]
        costs = [self.cost(item) for item in nodes]
        if node.name == "dyn":
            self._copy(node, nodes[0])
            return plus(1, costs[0])
        if node.name in ("_&&_", "_||_"):
            self._keep(node, self._size(node))
            return plus(*costs)
        if node.name == "_?_:_":
            self._choice(node, nodes)
            return plus(costs[0], max(costs[1:]))
        operands = [self._operand(item) for item in nodes]
        dearest, size = 0, None
        for signature in node.signatures:
            found = price(node.name, signature, operands)
            dearest = max(dearest, found.cost)
            if found.size is not None:
                size = found.size if size is None else size | found.size
            if node.name == "_[_]" and signature[0].kind in ("list", "map"):
                entry = self._entry(nodes[0])
                size = None if entry is None else entry.value
                step = "@items" if signature[0].kind == "list" else "@values"
                self._paths[id(node)] = (*self._path(nodes[0]), step)
            elif node.name == "_+_" and signature[0].kind in ("list", "string", "bytes"):
                self._join_entries(node, nodes)
            if size is None:
                size = self._size(node)
        self._keep(node, size)
        return plus(dearest, *costs)

    def _choice(self, node: Call, nodes: list[Node]) -> None:
        _, yes, no = nodes
        self._keep(node, self._size_or_unknown(yes) | self._size_or_unknown(no))
        self._join_entries(node, [yes, no])

    def _join_entries(self, node: Node, nodes: list[Node]) -> None:
        first = self._entry(nodes[0])
        both = None if first is None else first.joined(self._entry(nodes[1]))
        if both is not None:
            self._entries[id(node)] = both

    def _operand(self, node: Node) -> Operand:
        kind: t.Type = node.type
        item: Size | None = None
        path = self._path(node)
        if kind.parameters and path:
            item = self._declared((*path, "@items"))
        return Operand(node, kind, self._size(node), item)

    def _list(self, node: ListLiteral) -> int:
        costs = [self.cost(item) for item in node.items]
        self._entries[id(node)] = _Entry("list", exactly(1), self._spread(node.items))
        return plus(_NEW_LIST, *costs)

    def _map(self, node: MapLiteral) -> int:
        keys = [key for key, _, _ in node.entries]
        values = [value for _, value, _ in node.entries]
        costs = [self.cost(item) for item in (*keys, *values)]
        self._entries[id(node)] = _Entry("map", self._spread(keys), self._spread(values))
        return plus(_NEW_MAP, *costs)

    def _spread(self, nodes: list[Node]) -> Size:
        if not nodes:
            return exactly(0)
        size = Size(MOST, 0)
        for node in nodes:
            size |= self._size_or_unknown(node)
        return size

    def _binding(self, node: Binding) -> int:
        value = self.cost(node.value)
        variable = _Variable(self._path(node.value), self._size(node.value), self._entry(node.value))
        self._variables.setdefault(node.name, []).append(variable)
        result = self.cost(node.result)
        self._variables[node.name].pop()
        self._copy(node, node.result)
        return plus(_NEW_LIST, value, result)

    def _comprehension(self, node: Comprehension) -> int:
        over, initial = self.cost(node.over), self.cost(node.initial)
        inside = {node.accumulator: _Variable((), self._size(node.initial), self._entry(node.initial))}
        inside |= self._loop_variables(node)
        for name, variable in inside.items():
            self._variables.setdefault(name, []).append(variable)
        round_ = plus(self.cost(node.condition), self.cost(node.step))
        result = self.cost(node.result)
        for name in inside:
            self._variables[name].pop()
        rounds = self._size_or_unknown(node.over)
        if isinstance(node.initial, Literal):
            self._keep(node, self._size(node.initial))
        else:
            self._keep(node, rounds)
            made = self._entry(node.step)
            if made is not None:
                self._entries[id(node)] = made
        return plus(over, initial, times(rounds.high, round_), result)

    def _loop_variables(self, node: Comprehension) -> dict[str, _Variable]:
        entry, path = self._entry(node.over), self._path(node.over)
        key, value = (None, None) if entry is None else (entry.key, entry.value)
        is_list = (node.over.type.kind if entry is None else entry.container) == "list"
        item = _Variable((*path, "@items" if is_list else "@values"), value)
        if len(node.variables) == 2:
            index = _Variable((*path, "@indices" if is_list else "@keys"), key)
            return {node.variables[0]: index, node.variables[1]: item}
        return {node.variables[0]: item if is_list else _Variable((*path, "@keys"), key)}

    # What is known about a node

    def _variable(self, node: Node) -> _Variable | None:
        found = self._variables.get(node.name) if isinstance(node, Name) else None
        return found[-1] if found else None

    def _path(self, node: Node) -> Path:
        variable = self._variable(node)
        return self._paths.get(id(node), ()) if variable is None else variable.path

    def _keep(self, node: Node, size: Size | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _copy(self, node: Node, source: Node) -> None:
        self._keep(node, self._size(source))
        entry = self._entry(source)
        if entry is not None:
            self._entries[id(node)] = entry

    def _entry(self, node: Node) -> _Entry | None:
        variable = self._variable(node)
        return self._entries.get(id(node)) or (None if variable is None else variable.entry)

    def _declared(self, path: Path) -> Size | None:
        found = self._extent.at(path[1:]) if path else None
        return None if found is None else Size(0, found.most)

    def _size_or_unknown(self, node: Node) -> Size:
        return self._size(node) or UNKNOWN

    def _size(self, node: Node) -> Size | None:
        kept = self._sizes.get(id(node)) or _written_size(node) or self._declared(self._path(node))
        if kept is not None:
            self._sizes[id(node)] = kept
            return kept
        if _is_scalar(node.type):
            return exactly(1)
        variable = self._variable(node)
        return None if variable is None else variable.size


def _written_size(node: Node) -> Size | None:
    """The size of what stands in the expression itself."""
    if isinstance(node, Literal):
        return exactly(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
    if isinstance(node, ListLiteral):
        return exactly(len(node.items))
    return exactly(len(node.entries)) if isinstance(node, MapLiteral) else None


def _is_scalar(kind: t.Type) -> bool:
    if kind.kind == "optional_type":
        return _is_scalar(kind.parameters[0])
    return kind.kind in _SCALARS
