"""What a cache knows: objects by key, with indexes. Pure state, no I/O.

Every change to it comes back as a list of `Change`s for the handlers, computed by comparing, so that a list that
replaces everything reports the same additions, updates and deletions as a watch would have. An object that was
deleted and made anew under its name is two changes, never one: a handler that tracks a UID must see its end. An
object never steps back to an older version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from butler.api.objects import Change, is_newer, is_older
from butler.ipam.range_index import RangeIndex

if TYPE_CHECKING:
    from butler.api.objects import Key
    from butler.ipam.addresses import Range

T = TypeVar("T")
IndexFunction = Callable[[T], Iterable[Hashable]]
RangeFunction = Callable[[T], Iterable["tuple[Hashable, Range]"]]


class StoreEntry(NamedTuple, Generic[T]):
    """An object with what the store needs of its metadata, which a transform may have thrown away."""

    obj: T
    version: str
    uid: str


class ObjectStore(Generic[T]):
    """Objects by key, and keys by what the indexes say of them."""

    def __init__(self) -> None:
        self._entries: dict[Key, StoreEntry[T]] = {}
        self._functions: dict[str, IndexFunction[T]] = {}
        self._indexes: dict[str, dict[Hashable, dict[Key, None]]] = {}
        self._range_functions: dict[str, RangeFunction[T]] = {}
        self._range_indexes: dict[str, dict[Hashable, RangeIndex[Key]]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def get(self, key: Key) -> T | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.obj

    def version(self, key: Key) -> str | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.version

    def uid(self, key: Key) -> str | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.uid

    def values(self) -> list[T]:
        return [entry.obj for entry in self._entries.values()]

    def by(self, index: str, value: Hashable) -> list[T]:
        """The objects that an index files under a value."""
        return [self._entries[key].obj for key in self._indexes[index].get(value, ())]

    def count(self, index: str, value: Hashable) -> int:
        return len(self._indexes[index].get(value, ()))

    def touching(self, index: str, space: Hashable, addresses: Range) -> list[T]:
        """The objects with any of these addresses in a space, as an index of ranges has it, each once."""
        ranges = self._range_indexes[index].get(space)
        keys = dict.fromkeys(key for _, key in ranges.touching(addresses)) if ranges is not None else ()
        return [self._entries[key].obj for key in keys]

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """File every object under the values that `function` gives for it."""
        if name in self._functions:
            raise ValueError(f"there is an index {name!r} already")
        self._functions[name] = function
        self._indexes[name] = {}
        for key, entry in self._entries.items():
            self._file(name, key, entry.obj)

    def add_range_index(self, name: str, function: RangeFunction[T]) -> None:
        """File every object under the addresses that `function` gives for it, each with the space that they lie in."""
        if name in self._range_functions:
            raise ValueError(f"there is an index of ranges {name!r} already")
        self._range_functions[name] = function
        self._range_indexes[name] = {}
        for key, entry in self._entries.items():
            self._file_ranges(name, key, (), function(entry.obj))

    def put(self, key: Key, entry: StoreEntry[T]) -> list[Change[T]]:
        """Take in one version of one object; nothing when it is not newer than what is here."""
        old = self._entries.get(key)
        if old is not None and not is_newer(entry.version, old.version):
            return []
        self._set(key, old, entry)
        if old is not None and old.uid != entry.uid:
            return [Change(key, old.obj, None), Change(key, None, entry.obj)]
        return [Change(key, None if old is None else old.obj, entry.obj)]

    def remove(self, key: Key, version: str) -> list[Change[T]]:
        """Forget an object, unless what is here was made after that deletion."""
        old = self._entries.get(key)
        if old is None or is_older(version, old.version):
            return []
        self._set(key, old, None)
        return [Change(key, old.obj, None)]

    def replace(self, entries: dict[Key, StoreEntry[T]], keep: Collection[Key] = ()) -> list[Change[T]]:
        """Become exactly `entries`, and leave the keys in `keep` as they are."""
        changes: list[Change[T]] = []
        for key in [key for key in self._entries if key not in entries and key not in keep]:
            old = self._entries[key]
            self._set(key, old, None)
            changes.append(Change(key, old.obj, None))
        for key, entry in entries.items():
            if key in keep:
                continue
            before = self._entries.get(key)
            if before is None:
                self._set(key, None, entry)
                changes.append(Change(key, None, entry.obj))
            elif before.uid != entry.uid:
                self._set(key, before, entry)
                changes += [Change(key, before.obj, None), Change(key, None, entry.obj)]
            elif before.version != entry.version:
                self._set(key, before, entry)
                changes.append(Change(key, before.obj, entry.obj))
        return changes

    def _set(self, key: Key, old: StoreEntry[T] | None, new: StoreEntry[T] | None) -> None:
        for name in self._functions:
            if old is not None:
                self._unfile(name, key, old.obj)
            if new is not None:
                self._file(name, key, new.obj)
        for name, ranges_of in self._range_functions.items():
            before = () if old is None else ranges_of(old.obj)
            self._file_ranges(name, key, before, () if new is None else ranges_of(new.obj))
        if new is None:
            del self._entries[key]
        else:
            self._entries[key] = new

    def _file(self, name: str, key: Key, obj: T) -> None:
        index = self._indexes[name]
        for value in self._functions[name](obj):
            index.setdefault(value, {})[key] = None

    def _unfile(self, name: str, key: Key, obj: T) -> None:
        index = self._indexes[name]
        for value in self._functions[name](obj):
            filed = index.get(value)
            if filed is not None:
                filed.pop(key, None)
                if not filed:
                    del index[value]

    def _file_ranges(
        self,
        name: str,
        key: Key,
        before: Iterable[tuple[Hashable, Range]],
        after: Iterable[tuple[Hashable, Range]],
    ) -> None:
        index, old, new = self._range_indexes[name], set(before), set(after)
        for space, addresses in old - new:
            ranges = index[space]
            ranges.remove(addresses, key)
            if not ranges:
                del index[space]
        for space, addresses in new - old:
            if space not in index:
                index[space] = RangeIndex()
            index[space].add(addresses, key)
