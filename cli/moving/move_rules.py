"""Whether a connector can go on at another server: a comparison of sets of GTIDs. Pure.

Debezium goes on by GTID: it tells the server which transactions it has read, and gets the others.
So two things must hold of the other server. It has every transaction that the connector has read,
or the target has rows that the server lacks. And it still has, in its binlog, every transaction
that the connector has not read. A third one is asked where the server before still answers: that
nothing was written there which the other one has not got. What is written there later is lost
without a word, so a server that still takes writes is told, too.

Source: MySQL Reference Manual, "GTID Format and Storage"; MariaDB, "Global Transaction ID";
measured, tests/integration/connect/test_failover.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.checks.server_rules import source_findings
from shardmerge.connectors.binlog.gtids import Gtids, MariaDbGtids, MySqlGtids
from shardmerge.schemas.pipeline.settings import Source


@dataclass(frozen=True, slots=True)
class NewServer:
    """What a server says of itself.

    Attributes:
        variables: ``SHOW GLOBAL VARIABLES``, names in lower case.
        executed: The transactions that it has. Of MariaDB: the last of each domain in its binlog.
        purged: The transactions that its binlog has no more; None for none.
    """

    variables: Mapping[str, str]
    executed: Gtids | None
    purged: Gtids | None

    @property
    def gives_gtids(self) -> bool:
        """Whether a connector can read it by GTID."""
        return "gtid_domain_id" in self.variables or self.variables.get("gtid_mode") == "ON"


@dataclass(frozen=True, slots=True)
class ServerBefore:
    """What the server says of itself from which the source is moved.

    Attributes:
        executed: As ``NewServer.executed``.
        is_read_only: Whether ``read_only`` is ON.
        server_id: No two servers that replicate have the same.
    """

    executed: Gtids | None
    is_read_only: bool
    server_id: str

    def takes_writes_beside(self, new: NewServer) -> bool:
        """Whether it is another server than the new one, and not read-only."""
        return not self.is_read_only and self.server_id != new.variables.get("server_id")


def move_findings(
    source: Source,
    read: Gtids | None,
    new: NewServer,
    before: ServerBefore | None,
    *,
    begun: Collection[str] = (),
    abandon: bool = False,
) -> list[Finding]:
    """What speaks against the move, and what the operator should know.

    Args:
        source: As it is to be, with the new address.
        read: The transactions that the connector has read; None before its first offset.
        new: What the server at that address says.
        before: What the server before says; None when it does not answer.
        begun: Transactions that have rows in Kafka. Those that are not in ``read`` are read at
            least in part.
        abandon: Whether transactions that only the server before has may be lost.
    """
    where = f"source {source.name}"
    found = [each for each in source_findings(source, new.variables) if each.code != "SM-6103"]
    if new.variables.get("read_only", "OFF").upper() not in ("OFF", "0"):
        text = "its new server is read-only: promote it first, the connector's user writes signals"
        found.append(Finding(where, text, code="SM-6606"))
    if not new.gives_gtids:
        mode = new.variables.get("gtid_mode", "not set")
        text = f"gtid_mode of its new server is {mode}: positions of two binlogs have no order"
        found.append(Finding(where, text, code="SM-6605"))
        return found
    if missing := lacking(with_begun(read, begun), new.executed):
        text = f"its new server lacks transactions that the connector has read: {missing}"
        found.append(Finding(where, text, code="SM-6601"))
    if purged := lacking(new.purged, read) if read is not None else "":
        text = f"its new server has purged transactions that are not read yet: {purged}"
        found.append(Finding(where, text, code="SM-6602"))
    if before is not None and before.takes_writes_beside(new):
        text = "the server before still takes writes, which nobody will read: make it read-only"
        found.append(Finding(where, text, fault=False, code="SM-6613"))
    if only_there := lacking(before.executed if before else None, new.executed):
        text = f"the server before has transactions that the new one lacks: {only_there}"
        found.append(Finding(where, text, fault=not abandon, code="SM-6603"))
    if isinstance(read, MariaDbGtids):
        found += _domain_findings(where, read, new)
    return found


def with_begun(read: Gtids | None, begun: Collection[str]) -> Gtids | None:
    """The transactions of which the connector has read something."""
    return read if read is None else reduce(lambda gtids, each: gtids.adding(each), begun, read)


def lacking(some: Gtids | None, whole: Gtids | None) -> str:
    """The transactions of one set that another one lacks, as text; "" for none.

    Sets of the two flavours have nothing in common.
    """
    if some is None:
        return ""
    if isinstance(some, MySqlGtids):
        return str(some.without(whole) if isinstance(whole, MySqlGtids) else some)
    return str(some.without(whole) if isinstance(whole, MariaDbGtids) else some)


def _domain_findings(where: str, read: MariaDbGtids, new: NewServer) -> list[Finding]:
    """What is wrong with MariaDB's domains.

    Debezium compares the last transaction of each domain and server. A server shows only the last
    one of each domain. So in one domain the writes of the new server hide those of the one before,
    and the connector fails.
    """
    found = []
    executed = new.executed if isinstance(new.executed, MariaDbGtids) else MariaDbGtids({})
    for domain, (server, number) in sorted(read.last.items()):
        there = executed.last.get(domain)
        if there is not None and there[0] != server and there[1] >= number:
            text = (
                f"domain {domain} ends at {domain}-{there[0]}-{there[1]} on its new server, and "
                f"the connector has read {domain}-{server}-{number}: two servers wrote in one "
                "domain, and Debezium cannot go on"
            )
            found.append(Finding(where, text, code="SM-6604"))
            return found
    own = new.variables.get("gtid_domain_id", "")
    last = read.last.get(int(own)) if own.isdecimal() else None
    if last is not None and str(last[0]) != new.variables.get("server_id"):
        text = (
            f"gtid_domain_id of its new server is {own}, in which server {last[0]} wrote before: "
            "give it another one before its first write (SET GLOBAL gtid_domain_id)"
        )
        found.append(Finding(where, text, code="SM-6604"))
    return found
