"""A user by caching_sha2_password, with TLS and without; on 9.7 there is no older method."""

from __future__ import annotations

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.servers.stack import LocalStack
from tests.integration.connect.conftest import make_play
from tests.integration.connect.test_source_users import assert_let_in

from .servers import Kind

KINDS = ("mysql80", "mysql97")
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("mode", ["disabled", "required"])
def test_a_user_is_let_in_also_when_the_server_has_forgotten_the_password(
    stack: LocalStack, kind: Kind, rest: ConnectRest, mode: str
) -> None:
    play = make_play(stack, kind.server.port, kind.server.flavour, kind.server.version)
    assert_let_in(play, rest, mode)
