"""Who sees a page, as far as the page must know. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.pipeline.web import OFF


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sees a page.

    Attributes:
        access: ``commands`` of the table ``[web]``: ``off``, ``token`` or ``proxy``.
        user: Name of the user; "" for nobody.
        may_command: Whether the page has buttons for commands.
        form_key: The key that the page's forms must send; "" without a session.
        path: The page's path, to come back to after signing in.
        sign_out: The path at which a proxy ends the user's session; "" for none.
    """

    access: str = OFF
    user: str = ""
    may_command: bool = False
    form_key: str = ""
    path: str = "/"
    sign_out: str = ""


NOBODY = Visitor()
"""Nobody, where nobody may give commands."""
