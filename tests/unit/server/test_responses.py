"""Responses as they are sent."""

from __future__ import annotations

import gzip

from litestar import Litestar, Request, Response, get
from litestar.testing import TestClient

from butler.server.json_body import JsonBody, compressed_json_body, json_body
from butler.server.responses import respond

LARGE = compressed_json_body([f"10.0.{number // 256}.{number % 256}" for number in range(4_000)])


def test_a_large_answer_is_packed_once_and_says_the_same() -> None:
    assert LARGE.gzipped is not None
    assert gzip.decompress(LARGE.gzipped) == LARGE.body
    assert len(LARGE.gzipped) < len(LARGE.body) / 2
    assert compressed_json_body(["little"]).gzipped is None
    assert compressed_json_body(["little"]).etag == json_body(["little"]).etag


def test_only_who_takes_gzip_gets_it_and_the_tag_is_good_for_both() -> None:
    @get("/")
    async def large(request: Request[object, object, object]) -> Response[JsonBody]:
        return respond(request, LARGE)

    with TestClient(Litestar([large])) as client:
        plain = client.get("/", headers={"Accept-Encoding": "identity"})
        assert plain.content == LARGE.body
        assert "Content-Encoding" not in plain.headers
        small = client.get("/", headers={"Accept-Encoding": "gzip, br"})
        assert small.headers["Content-Encoding"] == "gzip"
        assert small.content == LARGE.body
        assert {plain.headers["Vary"], small.headers["Vary"]} == {"Accept-Encoding"}
        for tag in (plain.headers["ETag"], small.headers["ETag"]):
            again = client.get("/", headers={"If-None-Match": tag, "Accept-Encoding": "gzip"})
            assert (again.status_code, again.content) == (304, b"")
