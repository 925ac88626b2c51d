"""A worker whose recovery dawdles where records used to be lost; run as a script by the tests."""

import asyncio
import sys

from shardmerge.agents.app import main
from shardmerge.agents.runtime.recovery import Recovery


async def _dawdle() -> None:
    await asyncio.sleep(4.0)


Recovery.before_seek = staticmethod(_dawdle)
sys.exit(main())
