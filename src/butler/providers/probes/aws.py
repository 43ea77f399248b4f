"""AWS: the token service says whose access key it is. Every key may ask that, whatever else it may do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from butler.providers.http import ask
from butler.providers.probes.question import FORM, form
from butler.providers.sigv4 import signed_headers
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, Unclear, unexpected

if TYPE_CHECKING:
    from butler.providers.probes.question import ProbeQuestion
    from butler.rules.provider.probe_outcome import Outcome

_ACCOUNT = re.compile(rb"<Account>([0-9]{12})</Account>")
_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,64})</Code>")
_CLOCK = re.compile(rb"Signature (expired|not yet current)|RequestTimeTooSkewed|RequestExpired")


async def probe(asked: ProbeQuestion) -> Outcome:
    settings = asked.spec.aws
    assert settings is not None, "the schema asks for the block of the provider"
    region = settings.region
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    url = asked.clouds.aws.format(region=region, domain=domain) + "/"
    body = form(Action="GetCallerIdentity", Version="2011-06-15")
    headers = signed_headers(
        "POST",
        url,
        body,
        access_key=asked.credentials["accessKeyID"],
        secret_key=asked.credentials["secretAccessKey"],
        region=region,
        service="sts",
        at=asked.now,
        headers={"Content-Type": FORM},
    )
    reply = await ask("POST", url, headers=headers, body=body, tls=asked.clouds.tls, patience=asked.patience)
    if reply.status == 200:
        account = _ACCOUNT.search(reply.body)
        if account is None:
            return Unclear("the server does not answer as AWS does")
        return Accepted(f"AWS accepts the access key, which belongs to account {account[1].decode()}")
    if _CLOCK.search(reply.body):
        return Unclear("AWS finds that the clock of this machine is wrong, and looks at nothing else: set the clock")
    if reply.status in (401, 403):
        code = _CODE.search(reply.body)
        why = f" ({code[1].decode()})" if code else ""
        return CredentialsRefused(
            f"AWS does not accept accessKeyID and secretAccessKey{why}: correct them in the Secret"
        )
    return unexpected(reply.status, "AWS")
