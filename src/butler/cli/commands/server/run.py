"""`butleradm server run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.server.access.oidc import OidcSettings
from butler.cli.commands.server import RECORDS

FILE = click.Path(dir_okay=False, exists=True, path_type=Path)
PORT = 8090


def _oidc_options(command: Callable[..., Any]) -> Callable[..., Any]:
    found = [
        click.option("--oidc-issuer", metavar="URL", help="Log in through this OpenID provider."),
        click.option("--oidc-client-id", metavar="ID", help="What this console is called there."),
        click.option(
            "--oidc-client-secret-file", type=FILE, metavar="FILE", help="Its secret there.  [default: it has none]"
        ),
        click.option("--oidc-name", default="single sign-on", metavar="TEXT", show_default=True, help="On the button."),
        click.option(
            "--oidc-scope",
            multiple=True,
            default=("openid", "profile", "email"),
            metavar="SCOPE",
            show_default=True,
            help="What to ask the provider for; may be repeated.",
        ),
        click.option("--oidc-user-claim", default="sub", metavar="CLAIM", show_default=True, help="Tells who it is."),
        click.option(
            "--oidc-groups-claim", default="groups", metavar="CLAIM", show_default=True, help="Tells their groups."
        ),
        click.option(
            "--oidc-prefix",
            default="oidc:",
            metavar="TEXT",
            show_default=True,
            help="Stands before both in Kubernetes, so that no user of the provider becomes another user.",
        ),
        click.option(
            "--oidc-ca", type=FILE, metavar="FILE", help="Who vouches for the provider.  [default: the system]"
        ),
    ]
    for option in reversed(found):
        command = option(command)
    return command


@click.command(short_help="Serve the console in the foreground.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), metavar="FILE", help="As kubectl has it.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current one]")
@click.option(
    "--home-namespace",
    default="butler-system",
    metavar="NS",
    show_default=True,
    help="Where pools, allocations and providers are.",
)
@click.option(
    "--records-namespace",
    default=RECORDS,
    metavar="NS",
    show_default=True,
    help="Where sessions and the local administrator's password are kept; no other account needs a right there.",
)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, metavar="N", show_default=True, help="0: any free one."
)
@click.option("--url", default="", metavar="URL", help="What people type.  [default: host and port]")
@click.option("--tls-cert", type=FILE, metavar="FILE", help="Serve https with this certificate.")
@click.option("--tls-key", type=FILE, metavar="FILE", help="Its key.")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy before this server speaks https; needs --url. Its X-Forwarded-For and -Proto are believed.",
)
@click.option("--local", is_flag=True, help="Take one-time links, and print one: for one machine.")
@click.option("--local-admin", is_flag=True, help="Let the account of `butleradm server password` in.")
@_oidc_options
@click.option(
    "--session-idle",
    type=click.FloatRange(0, min_open=True),
    default=8.0,
    metavar="HOURS",
    show_default=True,
    help="A session that was not used for so long is over.",
)
@click.option(
    "--session-longest",
    type=click.FloatRange(0, min_open=True),
    default=12.0,
    metavar="HOURS",
    show_default=True,
    help="However busy: after so long one logs in anew, and the provider is asked for groups.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve /healthz, /readyz and /metrics on this port, too.  [default: none]",
)
@click.option(
    "--audit-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write down here, too, who did what; the log has it in any case.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
def run(
    kubeconfig: str | None,
    context: str | None,
    home_namespace: str,
    records_namespace: str,
    host: str,
    port: int,
    url: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool,
    local: bool,
    local_admin: bool,
    session_idle: float,
    session_longest: float,
    metrics_port: int | None,
    audit_file: Path | None,
    verbose: bool,
    **oidc: Any,
) -> None:
    """Serve the console in the foreground, with what the API server of the kubeconfig has.

    People act in their own name: the server's account needs the right to impersonate them, and Kubernetes decides what
    they may do. Several servers may run at once; a session is good at all of them. Plain http is served on this machine
    alone.

    \b
    Examples:
      butleradm server run --local
      butleradm server run --host 0.0.0.0 --url https://butler.example.com --tls-cert tls.crt --tls-key tls.key \\
        --oidc-issuer https://sso.example.com --oidc-client-id butler --oidc-client-secret-file secret
      butleradm server run --host 0.0.0.0 --behind-proxy --url https://butler.example.com --local-admin
    """
    from datetime import timedelta

    from butler.cli.toolkit.session import explained
    from butler.processes.server import run_server
    from butler.server.access.sessions import Lifetime
    from butler.server.process import Settings

    settings = Settings(
        home=home_namespace,
        records=records_namespace,
        host=host,
        port=port,
        local=local,
        local_admin=local_admin,
        oidc=_oidc(**oidc),
        url=url,
        tls_certificate=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        lifetime=Lifetime(timedelta(hours=session_idle), timedelta(hours=session_longest)),
        metrics_port=metrics_port,
    )
    run_server(kubeconfig, context, settings, explain=explained, audit_file=audit_file, verbose=verbose)


def _oidc(
    oidc_issuer: str | None,
    oidc_client_id: str | None,
    oidc_client_secret_file: Path | None,
    oidc_name: str,
    oidc_scope: tuple[str, ...],
    oidc_user_claim: str,
    oidc_groups_claim: str,
    oidc_prefix: str,
    oidc_ca: Path | None,
) -> OidcSettings | None:
    from butler.server.access.id_token import IdTokenClaims
    from butler.server.access.oidc import OidcSettings
    from butler.server.access.provider import ProviderTrouble, need_safe

    if not oidc_issuer:
        if oidc_client_id or oidc_client_secret_file or oidc_ca:
            raise click.UsageError("--oidc-client-id and the like need --oidc-issuer")
        return None
    if not oidc_client_id:
        raise click.UsageError("--oidc-issuer needs --oidc-client-id: register the console at the provider first")
    try:
        need_safe(oidc_issuer)
    except ProviderTrouble as trouble:
        raise click.BadParameter(str(trouble), param_hint="--oidc-issuer") from None
    claims = IdTokenClaims(oidc_user_claim, oidc_groups_claim, oidc_prefix, oidc_prefix)
    return OidcSettings(oidc_issuer, oidc_client_id, oidc_client_secret_file, oidc_name, oidc_scope, claims, oidc_ca)
