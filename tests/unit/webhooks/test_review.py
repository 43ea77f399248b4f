"""Questions of an API server, good and bad, and how answers look to kubectl."""

from __future__ import annotations

import json
from typing import Any

import pytest

from butler.ipam.layout import FieldProblem
from butler.webhooks import review
from unit.webhooks.given import body, pool, question


def read(operation: str = "CREATE", **more: Any) -> review.Question:
    return review.read(body(question(operation, new=pool(), **more)))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "the body is no AdmissionReview"),
        (b"garbage", "the body is no AdmissionReview"),
        (b"\xff\xfe{}", "the body is no AdmissionReview"),
        (b"[]", "the body is no AdmissionReview: Expected `object`, got `array`"),
        (b"{}", "missing required field `apiVersion`"),
        (b"[" * 100_000, "the body is no AdmissionReview"),
        (b'{"a":' * 100_000, "the body is no AdmissionReview"),
        (b'{"apiVersion":"v1","kind":"Pod"}', "got kind 'Pod' of 'v1'"),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}', "of 'admission.k8s.io/v1beta1'"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "holds no request"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}', "holds no request"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}', "missing required field `uid`"),
        (body(question("CREATE", new=pool(), uid="")), "has no uid"),
        (body(question("CREATE", new=pool(), uid=5)), "Expected `str`, got `int`"),
        (body(question("CREATE", new=pool(), resource="networkpools")), "Expected `object`, got `str`"),
    ],
)
def test_what_is_no_question_is_told_so(sent: bytes, why: str) -> None:
    with pytest.raises(review.BadReview) as told:
        review.read(sent)
    assert why in str(told.value)


def test_objects_that_are_null_are_none() -> None:
    asked = review.read(body(question("DELETE", old=pool())))
    assert review.raw(asked.object) is None
    assert json.loads(review.raw(asked.old_object) or b"")["spec"] == {"cidr": "10.40.0.0/24"}


def answered(asked: review.Question, answer: review.AdmissionAnswer) -> dict[str, Any]:
    found = json.loads(review.write(asked, answer))
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert found["response"].pop("uid") == "question-1"
    return dict(found["response"])


def test_consent_is_brief() -> None:
    assert answered(read(), review.allow()) == {"allowed": True}


def test_a_refusal_names_each_field_with_its_value() -> None:
    obj = {
        "spec": {"cidr": "10.0.0.1/8", "reserved": [{"cidr": "a"}, {"cidr": "b"}], "tenantAllocation": {"start": "x"}}
    }
    problems = [
        FieldProblem("spec.cidr", "has host bits"),
        FieldProblem("spec.reserved[1].cidr", "is odd"),
        FieldProblem("spec.tenantAllocation", "is too small"),
        FieldProblem("spec.nowhere[3].at", "is missing"),
    ]
    assert answered(read(), review.refuse(read(), problems, obj)) == {
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": 'spec.cidr: Invalid value: "10.0.0.1/8": has host bits;'
            ' spec.reserved[1].cidr: Invalid value: "b": is odd;'
            " spec.tenantAllocation: Invalid value: is too small; spec.nowhere[3].at: Invalid value: is missing",
            "details": {
                "name": "rack",
                "group": "butler.butlerlabs.dev",
                "kind": "NetworkPool",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "field": "spec.cidr",
                        "message": 'Invalid value: "10.0.0.1/8": has host bits',
                    },
                    {
                        "reason": "FieldValueInvalid",
                        "field": "spec.reserved[1].cidr",
                        "message": 'Invalid value: "b": is odd',
                    },
                    {
                        "reason": "FieldValueInvalid",
                        "field": "spec.tenantAllocation",
                        "message": "Invalid value: is too small",
                    },
                    {
                        "reason": "FieldValueInvalid",
                        "field": "spec.nowhere[3].at",
                        "message": "Invalid value: is missing",
                    },
                ],
            },
        },
    }


@pytest.mark.parametrize(
    ("answer", "code", "reason", "message"),
    [
        (review.forbid, 403, "Forbidden", "why"),
        (review.malformed, 400, "BadRequest", "why"),
        (
            review.undecided,
            503,
            "ServiceUnavailable",
            "nothing was changed, because it could not be checked: why; try again in a moment",
        ),
    ],
)
def test_other_refusals_are_one_sentence(answer: Any, code: int, reason: str, message: str) -> None:
    status = answered(read(), answer(read(), "why"))["status"]
    assert (status["code"], status["reason"], status["message"]) == (code, reason, message)


def test_a_warning_is_cut_where_a_header_would_be() -> None:
    short, long = answered(read(), review.allow(["brief", "x" * 300]))["warnings"]
    assert short == "brief"
    assert (len(long), long[-4:]) == (256, "x...")
