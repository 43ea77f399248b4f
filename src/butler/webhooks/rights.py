"""What the author of a write must be allowed to do themselves, before Butler does it for them.

Butler's account may read Secrets and build machines, and most authors may not. So an author who names another object
has to be allowed to use it in their own name. The API server knows, and is asked by a SubjectAccessReview, whose
answer is the same whether the object exists or not. Only admission can ask: afterwards the author is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.kube.errors import KubeError, OutcomeUnknown, Unreachable
from butler.kube.resource import SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.kube.client import Client
    from butler.rules.author_rights import Right
    from butler.webhooks.review import UserInfo

MOST: Final = 16
"""Rights that one write is asked for; no sensible write names more objects that are new to it."""


async def missing(client: Client, author: UserInfo, rights: Iterable[Right], patience: float) -> Right | None:
    """The first of these rights that the author lacks; None when they have them all. Raises KubeError."""
    asked = list(dict.fromkeys(rights))
    if len(asked) > MOST:
        raise KubeError(f"it names {len(asked)} objects that are new to it, and {MOST} can be checked at once")
    for right in asked:
        if not await _has(client, author, right, patience):
            return right
    return None


async def _has(client: Client, author: UserInfo, right: Right, patience: float) -> bool:
    spec = {
        "user": author.username,
        "uid": author.uid,
        "groups": list(author.groups),
        "extra": author.extra,
        "resourceAttributes": {
            "verb": right.verb,
            "group": right.resource.group,
            "version": right.resource.version,
            "resource": right.resource.plural,
            "namespace": right.namespace,
            "name": right.name,
        },
    }
    try:
        answer = await client.create(SUBJECT_ACCESS_REVIEWS, {"spec": spec}, timeout=patience)
    except OutcomeUnknown as error:  # a question changes nothing, though it is sent as something to be created
        raise Unreachable(str(error)) from error
    return (answer.get("status") or {}).get("allowed") is True
