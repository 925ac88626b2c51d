"""A worker whose end does not come: one of its services waits for ever.

Run as a script by the tests.
"""

import asyncio
import sys

from faust.transport.consumer import Consumer

from shardmerge.agents.app import main


async def _wait_for_ever(_: Consumer) -> None:
    await asyncio.Event().wait()


Consumer.on_stop = _wait_for_ever
sys.exit(main())
