"""`kubeserver`: serve a data directory in the foreground until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kubeserver.control_plane import ControlPlane, NotStarted
from kubeserver.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

CRD = "CustomResourceDefinition"


class Unusable(Exception):
    """Why a file of definitions cannot be used, in one sentence."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        definitions = list(read_definitions(options.definitions))
        with contextlib.suppress(KeyboardInterrupt):
            _loop_runner()(_serve(options.data_dir, options.port, definitions, quiet=options.quiet))
    except (NotStarted, Unusable) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kubeserver", description="A Kubernetes API server for one machine.")
    parser.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="where everything is kept")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: the last one)")
    parser.add_argument(
        *("--definitions", "-f"),
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="a file or folder with CustomResourceDefinitions as YAML; can be given several times",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print problems only")
    parser.add_argument("--version", action="version", version=__version__)
    return parser.parse_args(arguments)


def read_definitions(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """All CustomResourceDefinitions in these files and folders; raises Unusable."""
    for path in paths:
        files = sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
        if not files:
            raise Unusable(f"{path} holds no YAML file")
        for file in files:
            try:
                documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
            except (OSError, ValueError, yaml.YAMLError) as error:
                raise Unusable(f"{file} cannot be read: {error}") from None
            for document in documents:
                if not isinstance(document, dict) or document.get("kind") != CRD:
                    raise Unusable(f"{file} holds something other than a {CRD}")
                yield document


def _loop_runner() -> Any:
    try:
        import uvloop  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _serve(directory: Path, port: int, definitions: list[dict[str, Any]], *, quiet: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    server = await ControlPlane.start(directory, port=port, definitions=definitions)
    try:
        if not quiet:
            print(f"Serving {server.url}\n  export KUBECONFIG={server.kubeconfig}", flush=True)  # noqa: T201
        await stop.wait()
    finally:
        await server.stop()


if __name__ == "__main__":
    sys.exit(main())
