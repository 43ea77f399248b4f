"""What is published to a tenant's MetalLB, when it is written, and what counts as somebody else's change."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from butler.ipam.addresses import Family, Range, parse_range
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.errors import ServerError
from butler.kube.retry import Backoff
from butler.tenant.metallb import (
    LONGEST_MESSAGE,
    Outcome,
    address_pool,
    addresses,
    advertisement,
    differs,
    drift_of,
    publish,
)
from unit.kube.fake_api import FakeApi, refusal

Json = dict[str, Any]
BASE = "/apis/metallb.io/v1beta1/namespaces/metallb-system"
IPAM = "butler-controller/ipam"


def ranges(*texts: str) -> list[Range]:
    return [parse_range(*text.split("-"))[1] for text in texts]


def live(spec: Json, **owned: str) -> Json:
    """An object as the server has it, with the manager of each field of its spec."""
    managers = [
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {f"f:{field}": {}}}}
        for field, manager in owned.items()
    ]
    wanted = address_pool([])
    return {"metadata": {**wanted["metadata"], "uid": "u", "managedFields": managers}, "spec": spec}


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with Client(Connection(api.url), backoff=Backoff(0.005, cap=0.01), attempts=2) as connected:
        yield connected


def test_the_pool_is_as_the_contract_says() -> None:
    assert address_pool(ranges("10.40.1.8-10.40.1.15")) == {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {
            "name": "default-pool",
            "namespace": "metallb-system",
            "labels": {"app.kubernetes.io/managed-by": "butler"},
        },
        "spec": {"addresses": ["10.40.1.8-10.40.1.15"]},
    }
    assert address_pool([], auto_assign=False)["spec"] == {"addresses": [], "autoAssign": False}


def test_the_advertisement_names_the_pool_and_no_other() -> None:
    made = advertisement()
    assert (made["kind"], made["metadata"]["name"]) == ("L2Advertisement", "default")
    assert made["spec"] == {"ipAddressPools": ["default-pool"]}


def test_adjacent_ranges_stay_apart_one_address_is_a_range_and_order_is_of_no_matter() -> None:
    given = ranges("10.40.1.16-10.40.1.16", "10.40.1.8-10.40.1.15", "10.40.1.0-10.40.1.7")
    wanted = ["10.40.1.0-10.40.1.7", "10.40.1.8-10.40.1.15", "10.40.1.16-10.40.1.16"]
    assert addresses(given) == addresses(given[::-1]) == wanted


def test_the_other_family_is_written_too() -> None:
    assert addresses([Range(0xFD00 << 112, (0xFD00 << 112) + 7)], family=Family.V6) == ["fd00::-fd00::7"]


A = "10.40.1.0-10.40.1.7"
B = "10.40.1.8-10.40.1.15"


@pytest.mark.parametrize(
    ("spec", "owned", "asked", "changes"),
    [
        ({"addresses": [A]}, {}, None, False),
        ({"addresses": [A], "autoAssign": True, "avoidBuggyIPs": False}, {"addresses": IPAM}, None, False),
        ({"addresses": [A], "autoAssign": False}, {"autoAssign": "kubectl-edit"}, None, False),
        ({"addresses": [A], "autoAssign": False}, {"autoAssign": IPAM}, None, True),
        ({"addresses": [A], "autoAssign": True}, {}, False, True),
        ({"addresses": [A], "autoAssign": True}, {}, True, False),
        ({"addresses": [A, B]}, {}, None, True),
        ({"addresses": []}, {}, None, True),
        ({}, {}, None, True),
        ({"addresses": A}, {}, None, True),
    ],
)
def test_only_a_difference_is_written(spec: Json, owned: dict[str, str], asked: bool | None, changes: bool) -> None:
    assert differs(address_pool(ranges(A), auto_assign=asked), live(spec, **owned)) is changes


def test_a_missing_object_and_a_missing_label_are_differences() -> None:
    wanted = address_pool(ranges(A))
    assert differs(wanted, None)
    unlabelled = live({"addresses": [A]})
    unlabelled["metadata"] = {**unlabelled["metadata"], "labels": None}
    assert differs(wanted, unlabelled)


@pytest.mark.parametrize("managed", [None, 7, [7], [{"manager": IPAM}], [{"fieldsV1": {"f:spec": []}}]])
def test_managed_fields_of_any_shape_are_survived(managed: Any) -> None:
    odd = live({"addresses": [A]})
    odd["metadata"]["managedFields"] = managed
    assert not differs(address_pool(ranges(A)), odd)
    assert drift_of(address_pool(ranges(B)), odd)


def test_what_somebody_else_wrote_is_drift_and_what_we_wrote_is_not() -> None:
    wanted = address_pool(ranges(A))
    theirs = live({"addresses": ["10.0.0.0/8"]}, addresses="kubectl-edit")
    assert drift_of(wanted, theirs) == ("IPAddressPool default-pool: addresses was 10.0.0.0/8 (set by kubectl-edit)",)
    assert drift_of(wanted, live({"addresses": [B]}, addresses=IPAM)) == ()
    assert drift_of(wanted, live({"addresses": [A]}, addresses="kubectl-edit")) == ()
    assert drift_of(wanted, None) == ()
    assert drift_of(wanted, live({})) == ("IPAddressPool default-pool: addresses was not set",)


def test_a_story_of_drift_stays_short() -> None:
    (told,) = drift_of(address_pool(ranges(A)), live({"addresses": ["10.0.0.0/8"] * 10000}))
    assert len(told) == LONGEST_MESSAGE


# Publishing, where the tenant's side says no.


def present(api: FakeApi, *texts: str) -> None:
    api.put(f"{BASE}/ipaddresspools/default-pool", address_pool(ranges(*texts)))
    api.put(f"{BASE}/l2advertisements/default", advertisement())


async def test_what_is_so_already_is_not_written(api: FakeApi, client: Client) -> None:
    present(api, A)
    result = await publish(client, ranges(A))
    assert (result.outcome, result.before, result.is_current) == (Outcome.CURRENT, (A,), True)
    assert set(api.counts) == {"GET"}


async def test_a_change_is_applied_with_force_under_butlers_name_and_read_back(api: FakeApi, client: Client) -> None:
    present(api, A)
    result = await publish(client, ranges(A, B))
    assert (result.outcome, result.before) == (Outcome.WRITTEN, (A,))
    (patched,) = [path for verb, path in api.requests if verb == "PATCH"]
    assert "fieldManager=butler-controller%2Fipam" in patched
    assert "force=true" in patched
    assert api.requests[-1] == ("GET", f"{BASE}/ipaddresspools/default-pool")


async def test_without_metallb_there_is_an_outcome_and_no_error(api: FakeApi, client: Client) -> None:
    for given in ([], ranges(A)):
        result = await publish(client, given)
        assert (result.outcome, result.is_current, result.before) == (Outcome.NOT_INSTALLED, False, None)
        assert result.message.startswith("MetalLB is not installed")


@pytest.mark.parametrize("code", [400, 403, 422])
async def test_a_refusal_of_the_webhook_is_told_in_its_own_words(api: FakeApi, client: Client, code: int) -> None:
    present(api, A)
    words = 'admission webhook "ipaddresspoolvalidationwebhook.metallb.io" denied the request: overlaps'
    api.refuse.extend([None, None, refusal(code, "Whatever", words)])
    result = await publish(client, ranges(B))
    assert (result.outcome, result.message, result.is_current) == (Outcome.REFUSED, words, False)
    assert result.drift == (), "nothing was put right"


async def test_a_webhook_that_is_not_up_yet_is_an_outcome(api: FakeApi, client: Client) -> None:
    words = 'Internal error occurred: failed calling webhook "x": connection refused'
    api.refuse.extend([None, None, *[refusal(500, "InternalError", words)] * 2])
    result = await publish(client, ranges(A))
    assert (result.outcome, result.message) == (Outcome.NOT_READY, words)


async def test_a_broken_server_is_an_error(api: FakeApi, client: Client) -> None:
    present(api, A)
    api.refuse.extend([None, None, *[refusal(500, "InternalError", "etcd is gone")] * 2])
    with pytest.raises(ServerError):
        await publish(client, ranges(B))


async def test_a_pool_that_is_changed_back_at_once_is_not_taken_for_published(api: FakeApi, client: Client) -> None:
    present(api, A)

    async def fight(request: Any) -> None:
        if request.method == "GET" and "PATCH" in api.counts:
            present(api, A)

    api.before = fight
    result = await publish(client, ranges(B))
    assert (result.outcome, result.is_current) == (Outcome.CONTESTED, False)
    assert A in result.message


async def test_no_ranges_delete_the_pool_and_keep_the_advertisement(api: FakeApi, client: Client) -> None:
    present(api, A)
    result = await publish(client, [])
    assert (result.outcome, result.before) == (Outcome.WRITTEN, (A,))
    assert list(api.objects) == [f"{BASE}/l2advertisements/default"]
    assert (await publish(client, [])).outcome is Outcome.CURRENT
