"""An API server whose every free text wants to steer the reader's terminal: a real one, seen through a lying proxy."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

POISON = "\x1b]0;owned\x07\x1b[8m\rover\x9b2J\x90q\x9c\u202eturned\u2066\u200b\x7f\x85\u2028\x08end"
"""OSC, BEL, SGR, CR, C1, bidirectional controls, zero width, DEL, NEL, line separator, backspace."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
TEXTS = frozenset(
    {"message", "description", "reason", "note", "manager", "component", "reportingComponent", "action", "gitVersion"}
)
"""Fields of any object in which an API server takes any text."""
OURS = re.compile(r"\x1b\[(?!8m)[0-9;]*m")
"""The colours that the programs print themselves; no program prints hidden text."""


def poisoned(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        every = key in ("annotations", "labels")
        return {name: poisoned(part, "message" if every else name) for name, part in value.items()}
    if isinstance(value, list):
        return [poisoned(part, key) for part in value]
    return value + POISON if isinstance(value, str) and key in TEXTS else value


@contextmanager
def lying(plane: ControlPlane) -> Iterator[str]:
    """The address of the proxy. Who asks is the administrator."""

    class Liar(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            asked = urllib.request.Request(plane.url + self.path, body, dict(plane.headers), method=self.command)
            for name in ("Content-Type", "Accept", "Impersonate-User"):
                if self.headers.get(name):
                    asked.add_header(name, self.headers[name])
            try:
                with urllib.request.urlopen(asked, context=plane.tls, timeout=60) as found:
                    self.tell(found.status, found)
            except urllib.error.HTTPError as error:
                with error:
                    self.tell(error.code, error)

        def tell(self, status: int, found: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", found.headers.get("Content-Type") or "text/plain")
            if "watch=" in self.path:
                self.send_header("Connection", "close")
                self.end_headers()
                for line in found:
                    self.wfile.write(_spoiled(line) + b"\n")
                    self.wfile.flush()
                self.close_connection = True
                return
            said = _spoiled(found.read())
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 (their names)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Commands leave without a word."""

    server = Quiet(("127.0.0.1", 0), Liar)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _spoiled(said: bytes) -> bytes:
    try:
        return json.dumps(poisoned(json.loads(said))).encode()
    except ValueError:
        return said
