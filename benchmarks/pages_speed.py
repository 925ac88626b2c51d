"""How long a target's page takes, and how large it is.

Usage: ``python -m benchmarks.pages_speed [--shards N] [--columns N] [--odd N] [--changes N]``.

Of so many shards (``--odd``) each one lacks other columns than the next; with 1 no two neighbours
are alike. Each of the changes was made by 1,000 shards. The times are the processor's. The first
page has the templates compiled, too.
"""

from __future__ import annotations

import argparse
import time

from shardmerge.agents.pages.render import Asked, Frame, target_page
from tests.example_pages import NOW_MS, ORDERS, wide


def main() -> None:
    """Measure, and print a line for each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--odd", type=int, default=100)
    parser.add_argument("--changes", type=int, default=20)
    arguments = parser.parse_args()
    view = wide(arguments.shards, arguments.columns, arguments.odd, arguments.changes)
    frame = Frame("shop", caught_up=True, revision=1, now_ms=NOW_MS)
    pages = {
        "columns that differ": Asked(),
        "every column": Asked(every_column=True),
        "one shard": Asked(search=f"orders_{arguments.shards - 1}"),
    }
    print(f"{'':<22}{'milliseconds':>14}{'kilobytes':>12}")
    for name, asked in pages.items():
        started = time.process_time()
        target = view.target(str(ORDERS))
        assert target is not None
        page = target_page(frame, target, asked)
        seconds = time.process_time() - started
        print(f"{name:<22}{seconds * 1_000:>14.0f}{len(page.encode()) / 1_000:>12.0f}")


if __name__ == "__main__":
    main()
