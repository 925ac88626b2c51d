"""One part of ``shardmerge run``, in a process that ends when the supervising one does.

Usage: ``python -m shardmerge.cli.deployment.part OWNER COMMAND…``, where OWNER is the pid of the
supervising process and COMMAND a call of ``shardmerge`` without its first word.
"""

from __future__ import annotations

import sys

from shardmerge.cli.main import main as shardmerge

from .owner import end_with


def main() -> None:
    """Run the part that the arguments name."""
    end_with(int(sys.argv[1]))
    shardmerge(sys.argv[2:], prog_name="shardmerge")


if __name__ == "__main__":
    main()
