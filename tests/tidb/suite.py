"""Everything that must hold of a TiDB: the tests of this folder, the contract of targets, the line.

Usage: ``python -m tests.tidb.suite [--tidb USER:PASSWORD@HOST:PORT] [--random N] [--seed S]``

Without an address the server of ``make tidb`` is started, and ended afterwards. Ends with 0 only if
every part did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from shardmerge.local.sigterm import end_on_sigterm
from shardmerge.schemas.model.errors import TargetError

from .running import ROOT, running_tidb, tidb_target


def main(arguments: list[str]) -> int:
    """Run the parts one after the other, each whatever the one before gave."""
    parser = argparse.ArgumentParser(prog="tests.tidb.suite")
    parser.add_argument("--tidb", default="")
    parser.add_argument("--random", type=int, default=20, help="how many random rollouts to play")
    parser.add_argument("--seed", type=int, default=2000, help="the first one's")
    options = parser.parse_args(arguments)
    end_on_sigterm()
    with ExitStack() as running:
        try:
            place = options.tidb
            if not place:
                folder = Path(tempfile.mkdtemp(prefix="tidb-", dir=ROOT / ".local"))
                running.callback(shutil.rmtree, folder, ignore_errors=True)
                address = running.enter_context(running_tidb(folder))
                place = f"{address.user}:{address.password}@{address.host}:{address.port}"
            version = tidb_target(place).version
        except TargetError as error:
            print(f"{error}; {error.hint}")
            return 1
        print(f"TiDB {version}", flush=True)
        environment = {**os.environ, "SHARDMERGE_TIDB": f"{place.split('/')[0]}/{version}"}
        contract = "tests/integration/spark/test_target_contract.py"
        parts = (
            ("pytest", "tests/tidb", "-q"),
            ("pytest", contract, "-q", "-k", "tidb"),
            ("tests.e2e.runner", "tests/e2e/scenarios", "--threads", "4", "--tidb", place,
             "--random", str(options.random), "--seed", str(options.seed)),
        )  # fmt: skip
        codes = [
            subprocess.run(
                [sys.executable, "-m", *part], env=environment, cwd=ROOT, check=False
            ).returncode
            for part in parts
        ]
    return 0 if not any(codes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
