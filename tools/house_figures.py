"""Count what makes the code hard to find your way in: `python tools/house_figures.py [folder of a checkout]`.

Figures, never failures: compare two checkouts to see whether a change made the house easier or harder to read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = ("src", "kubeserver/src")
CODE = (*SOURCES, "tests", "kubeserver/tests", "tools", "bench")
TEXTS = (*CODE, "docs", "console/src")
LONG_FUNCTION, LONG_FILE = 80, 450
NOUNS = {"string", "strings", "ring", "thing", "things", "routing", "networking", "billing", "listing", "setting"}
"""End in -ing and name a thing all the same."""
PARTICIPLES = {"shown", "seen", "heard", "told", "held", "kept", "found", "hidden", "given", "known", "lost", "gone"}
PERSONS = re.compile(r"\b(?:some|no|any|every)body\b|\bwhoever\b", re.IGNORECASE)
DECIDERS = ("butler.controllers", "butler.webhooks")
READERS = ("views", "reports", "server", "cli")


def files(root: Path, folders: tuple[str, ...], *suffixes: str) -> Iterator[Path]:
    """The files of these folders, without what is built or fetched."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and not {"node_modules", "dist", "__pycache__"} & set(path.parts):
                yield path


def is_mood(stem: str) -> bool:
    """Whether a module's name says what happens in it instead of what is in it."""
    word = stem.lstrip("_").rsplit("_", 1)[-1]
    return word in PARTICIPLES or (word.endswith("ing") and word not in NOUNS and len(word) > 4)


def bindings_of_each(tree: ast.AST) -> int:
    """Loops and comprehensions whose variable is called `each`."""
    targets = [node.target for node in ast.walk(tree) if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)]
    names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return sum(name.id == "each" for name in names)


def long_functions(tree: ast.AST) -> int:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum((node.end_lineno or node.lineno) - node.lineno >= LONG_FUNCTION for node in functions)


def deciders_imported(tree: ast.AST) -> int:
    """Import lines that reach into a controller or a webhook."""
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return sum(module == decider or module.startswith(f"{decider}.") for module in modules for decider in DECIDERS)


def figures(root: Path) -> Iterator[tuple[str, str]]:
    trees = {path: ast.parse(path.read_text()) for path in files(root, CODE, ".py")}
    sources = {path: tree for path, tree in trees.items() if path.relative_to(root).as_posix().startswith(SOURCES)}
    modules = [path for path in sources if path.stem != "__init__"] + sorted(
        {path.parent for path in sources if path.stem == "__init__"}
    )
    yield "source lines", f"{sum(len(path.read_text().splitlines()) for path in sources):,}"
    moods = Counter(path.stem for path in modules if is_mood(path.stem))
    yield "modules named by a gerund or participle", f"{moods.total()}  {_most(moods)}"
    homes: dict[str, set[Path]] = defaultdict(set)
    for path, tree in sources.items():
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(path)
    shared = Counter({name: len(where) for name, where in homes.items() if len(where) > 1})
    yield "public class names that mean several things", f"{len(shared)} of {len(homes)}  {_most(shared)}"
    yield "loops whose variable is `each`", f"{sum(map(bindings_of_each, trees.values())):,}"
    persons = Counter({path.relative_to(root).parts[0]: 0 for path in files(root, TEXTS, ".py", ".md", ".ts", ".tsx")})
    for path in files(root, TEXTS, ".py", ".md", ".ts", ".tsx"):
        if path != Path(__file__):
            persons[path.relative_to(root).parts[0]] += len(PERSONS.findall(path.read_text()))
    yield "somebody, nobody, anybody, everybody, whoever", f"{persons.total():,}  {_most(persons)}"
    reached = sum(deciders_imported(tree) for path, tree in sources.items() if set(path.parts) & set(READERS))
    yield "imports of controllers or webhooks by reports, server and cli", f"{reached}"
    yield f"functions over {LONG_FUNCTION} lines", f"{sum(map(long_functions, trees.values()))}"
    long = [path for path in trees if len(path.read_text().splitlines()) > LONG_FILE]
    yield f"files over {LONG_FILE} lines", f"{len(long)}  {', '.join(path.name for path in long)}"


def _most(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.most_common(8))


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).parent.parent).resolve()
    for name, figure in figures(root):
        print(f"{name}: {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
