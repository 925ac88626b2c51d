"""A worker that is told to end while records wait to be sent, and hears nothing of its group.

Run as a script by the tests.
"""

import itertools
import os
import signal
import sys

from shardmerge.agents.app import main
from shardmerge.agents.runtime.membership import Membership

_SURE = 40
"""So many requests are sent before."""
_asked = itertools.count(1)
_is_sure = Membership.__dict__["is_sure"].fget


def _is_sure_at_first(self: Membership) -> bool:
    number = next(_asked)
    if number == _SURE:
        os.kill(os.getpid(), signal.SIGTERM)
    return number < _SURE and bool(_is_sure(self))


Membership.is_sure = property(_is_sure_at_first)  # type: ignore[method-assign,assignment]
sys.exit(main())
