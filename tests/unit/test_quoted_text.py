"""Where text of others becomes part of what Butler writes: conditions, Events, errors and drift quote it clean."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from butler.api.conditions import with_condition
from butler.kube.errors import api_error
from butler.kube.events import _shortened
from butler.tenant.metallb import address_pool, drift_of
from cli.hostile import POISON, RAW

LONG = POISON * 2_000


def is_clean(text: str, longest: int) -> bool:
    return RAW.search(text) is None and "\n" not in text and "owned" in text and len(text) <= longest


def test_a_condition_quotes_nothing_raw() -> None:
    [made] = with_condition((), type="Ready", status=False, reason="X", message=LONG, now=datetime.now(UTC))
    assert is_clean(made.message, 4096)
    again = with_condition((made,), type="Ready", status=False, reason="X", message=LONG, now=datetime.now(UTC))
    assert again == (made,), "nothing to write"


def test_an_event_quotes_nothing_raw() -> None:
    assert is_clean(_shortened(LONG), 1024)


def test_what_a_server_answers_is_quoted_clean_and_bounded() -> None:
    cause = {"field": LONG, "message": LONG, "reason": LONG}
    body = {"message": LONG, "reason": LONG, "details": {"causes": [cause] * 1_000}}
    for said in (json.dumps(body).encode(), LONG.encode()):
        error = api_error(500, said, "list services")
        assert RAW.search(str(error) + error.message + error.reason) is None
        assert len(str(error)) < 9_000
        for found in error.causes:
            assert RAW.search(found.field + found.message + found.reason) is None
        assert len(error.causes) <= 200


def test_what_a_tenant_wrote_into_its_pool_is_quoted_clean_and_bounded() -> None:
    wanted = address_pool([])
    live = json.loads(json.dumps(wanted))
    live["spec"]["addresses"] = [LONG]
    live["metadata"]["managedFields"] = [{"manager": LONG, "fieldsV1": {"f:spec": {"f:addresses": {}}}}]
    found = drift_of(wanted, live)
    assert found
    assert all(is_clean(text, 1024) for text in found), found
