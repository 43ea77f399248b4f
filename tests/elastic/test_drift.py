"""What a user changes on the tenant is corrected and reported, and what is not Butler's is left alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from elastic.estate import METALLB
from elastic.stories import story

if TYPE_CHECKING:
    from elastic.estate import Elastic, ElasticTenant

MODES = pytest.mark.parametrize("mode", ["static", "elastic"])
WITHOUT_INGRESS = {"ingress": {"enabled": False}}


def _count(web: ElasticTenant) -> int:
    return sum(event.get("count", 1) for event in web.events("MetalLBDriftCorrected"))


def _is_right(web: ElasticTenant, entries: list[str]) -> bool:
    spec = (web.pool() or {}).get("spec") or {}
    return spec.get("addresses") == entries and spec.get("autoAssign", True) is True


@MODES
@story
def test_edits_of_the_pool_are_put_right_and_told(estate: Elastic, mode: str) -> None:
    place = estate.place(mode=mode)
    web = place.started(addons=WITHOUT_INGRESS)
    right = [place.range(16, 17)]
    web.publishes(*right)
    kind = {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool"}
    mine = {**kind, "metadata": {"name": "mine"}, "spec": {"addresses": ["192.0.2.0/28"], "autoAssign": False}}
    generation = web.send("POST", f"{METALLB}/ipaddresspools", mine)["metadata"]["generation"]
    edits = (
        {"addresses": [*right, "192.0.2.40/32"]},
        {"addresses": ["192.0.2.41-192.0.2.42"]},
        {"addresses": [place.range(16)]},
        {"autoAssign": False},
    )
    for edit in edits:
        web.edit_pool(edit)
        web.sees(partial(_is_right, web, right), f"{edit} is put right")
        (event,) = web.until(lambda: web.events("MetalLBDriftCorrected")[-1:], "it is told")
        assert event["type"] == "Warning"
        assert "default-pool" in event["message"]
    web.delete_pool()
    web.sees(partial(_is_right, web, right), "a deleted pool comes back")
    found = web.side.get("ipaddresspools", "metallb-system", "mine")
    assert found is not None
    assert found["metadata"]["generation"] == generation, "another pool is none of Butler's business"
    place.verdict()


def _advertised_anew(web: ElasticTenant, old: str) -> bool:
    found = web.side.get("l2advertisements", "metallb-system", "default")
    return found is not None and found["metadata"]["uid"] != old


def _without_advertisement(web: ElasticTenant) -> str:
    """Delete it; the UID that it had."""
    before = web.sees(lambda: web.side.get("l2advertisements", "metallb-system", "default"), "it is advertised")
    web.send("DELETE", f"{METALLB}/l2advertisements/default")
    return str(before["metadata"]["uid"])


@MODES
@story
def test_a_deleted_advertisement_comes_back(estate: Elastic, mode: str) -> None:
    place = estate.place(mode=mode)
    web = place.started(addons=WITHOUT_INGRESS)
    web.publishes(place.range(16, 17))
    old = _without_advertisement(web)
    web.sees(partial(_advertised_anew, web, old), "it is advertised again")
    place.verdict()


@story
def test_a_service_whose_address_a_user_takes_away_is_served_again(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.add("a")
    web.gets("a")
    web.edit_pool({"addresses": [place.range(16)]})
    web.sees(partial(_is_right, web, [place.range(16), place.range(17)]), "both ranges are back")
    web.gets("a")
    place.verdict()


@story
def test_a_pool_that_is_edited_again_and_again_is_put_right_each_time(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started(addons=WITHOUT_INGRESS)
    web.publishes(place.range(16))
    for number in range(6):
        web.edit_pool({"addresses": [place.range(16), f"192.0.2.{number}/32"]})
    web.sees(partial(_is_right, web, [place.range(16)]), "it is right in the end")
    web.until(lambda: _count(web), "it is told")
    place.verdict()
