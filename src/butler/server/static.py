"""The console's files, as `make console` built them.

What is asked for is looked up among the files that are there, never made into a path. Everything that is no file and
not the API's is a page of the console, which finds its own way: all of these get index.html. Files in assets/ carry a
hash of their content in their name, so that browsers keep them for good.
"""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litestar import Request, Response, Router, get
from litestar.enums import MediaType

import butler
from butler.server.access.pages import new_nonce, page, policy
from butler.server.problems import RequestRefused
from butler.server.responses import accepts

NONCE: Final = "__CSP_NONCE__"
"""Stands in index.html where each answer gets a fresh one."""
FOREVER: Final = "public, max-age=31536000, immutable"
ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
TYPES: Final = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
}


def find_console() -> Path:
    """Where the files are: in the package where it was installed, else where `make console` puts them."""
    package = Path(butler.__file__).parent
    packaged = package / "console"
    return packaged if (packaged / "index.html").exists() else package.parents[1] / "console" / "dist"


@dataclass(slots=True)
class _Shelf:
    """The files of one build."""

    index: str
    files: dict[str, Path]
    built: int


class ConsoleFiles:
    """The files of the newest build; a new one is noticed by its index.html."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shelf: _Shelf | None = None

    def shelf(self) -> _Shelf | None:
        index = self._directory / "index.html"
        try:
            built = index.stat().st_mtime_ns
            if self._shelf is None or self._shelf.built != built:
                files = {
                    "/" + path.relative_to(self._directory).as_posix(): path
                    for path in self._directory.rglob("*")
                    if path.is_file() and not path.is_symlink()
                }
                self._shelf = _Shelf(index.read_text("utf-8"), files, built)
        except OSError:
            self._shelf = None
        return self._shelf

    def answer(self, path: str, accepted: str) -> Response[Any]:
        """The file, or the page that finds its own way."""
        shelf = self.shelf()
        if shelf is None:
            return _not_built()
        found = shelf.files.get(path)
        if found is not None and path != "/index.html":
            return self._file(shelf, path, found, accepted)
        if path.startswith("/assets/"):
            raise RequestRefused(404, "there is no such file: load the page again, it may be of an older version")
        return self._page(shelf)

    def _page(self, shelf: _Shelf) -> Response[str]:
        nonce = new_nonce()
        headers = {"Content-Security-Policy": policy(nonce), "Cache-Control": "no-store"}
        return Response(shelf.index.replace(NONCE, nonce), media_type=MediaType.HTML, headers=headers)

    def _file(self, shelf: _Shelf, path: str, found: Path, accepted: str) -> Response[bytes]:
        headers = {"Cache-Control": FOREVER if path.startswith("/assets/") else "no-cache", "Vary": "Accept-Encoding"}
        for encoding, suffix in ENCODINGS:
            packed = shelf.files.get(path + suffix)
            if packed is not None and accepts(accepted, encoding):
                headers["Content-Encoding"] = encoding
                break
        else:
            packed = found
        kind = TYPES.get(found.suffix) or mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        try:
            return Response(packed.read_bytes(), media_type=kind, headers=headers)
        except OSError:
            raise RequestRefused(404, "the file went a moment ago: load the page again") from None


def _not_built() -> Response[str]:
    return page(
        "The console is not built yet",
        "<p>Build it once, in the folder of Butler's README, then load this page again:</p>"
        "<p><code>make console</code></p><p>Until then <code>butleradm</code> shows the same in a terminal.</p>",
        status=503,
    )


def console_routes(directory: Path) -> Router:
    """Everything outside the API."""
    console = ConsoleFiles(directory)

    @get(["/", "/{path:path}"], include_in_schema=False)
    async def serve(request: Request[Any, Any, Any]) -> Response[Any]:
        asked = request.scope["path"]
        if asked == "/api" or asked.startswith("/api/"):
            raise RequestRefused(404, "there is nothing here: /api/v1/openapi.json tells what there is")
        return console.answer(asked, request.headers.get("accept-encoding", ""))

    return Router("/", route_handlers=[serve])
