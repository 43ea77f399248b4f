"""The few pages that the server writes itself, for moments at which the console cannot be shown. No script inside."""

from __future__ import annotations

import secrets
from html import escape
from typing import Final

from litestar import Response
from litestar.enums import MediaType

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;"
    "color:#1c2129;background:#fff}h1{font-size:1.25rem}code{background:#eef1f5;padding:.1em .3em}"
    "button,a.go{font:inherit;padding:.5rem 1rem;color:#fff;background:#2b48a6;border:0;border-radius:4px;"
    "text-decoration:none;display:inline-block}"
    "@media(prefers-color-scheme:dark){body{color:#e4e7ec;background:#0f1218}code{background:#272d38}}"
)


def policy(nonce: str) -> str:
    """What a page of ours may do: load its own files, talk to its own server, and nothing else."""
    return (
        "default-src 'self'; script-src 'self'; "
        f"style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    )


def new_nonce() -> str:
    return secrets.token_urlsafe(16)


def page(title: str, body: str, *, status: int = 200, referrer: str = "no-referrer") -> Response[str]:
    """A page. `title` is text; `body` is HTML in which everything from outside has been escaped."""
    nonce = new_nonce()
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)} - Butler</title><style nonce="{nonce}">{STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    headers = {"Content-Security-Policy": policy(nonce), "Cache-Control": "no-store", "Referrer-Policy": referrer}
    return Response(html, status_code=status, media_type=MediaType.HTML, headers=headers)
