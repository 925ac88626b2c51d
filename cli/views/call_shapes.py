"""The values that ``--json`` prints of commands that do something. Pure; see ``shapes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .decision_shapes import DecisionLine


@dataclass(frozen=True, slots=True)
class CallReason:
    """Why a cut-over or a rebuild does not go on.

    Attributes:
        code: Such as ``SM-6705``.
        text: What was seen, and where.
        hint: What you can do; "" for nothing more than ``text`` says.
    """

    code: str
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class GivenCommand:
    """What ``shardmerge command`` prints.

    Attributes:
        change: Its place in the log; its answer has the same ``change``.
        answer: None when none came in time: it comes when the agents run.
    """

    change: str
    answer: DecisionLine | None


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Something about the pipeline file, a server, Kafka Connect or topics.

    Attributes:
        where: What it is about.
        text: What was found, and what it must be.
        code: Such as ``SM-6101``.
        fault: True: the pipeline must not run with it. False: the operator should know it.
    """

    where: str
    text: str
    fault: bool
    code: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What ``shardmerge check`` prints.

    Attributes:
        pipeline: Its name; "" when the file cannot be read.
        findings: Faults first.
    """

    pipeline: str
    findings: tuple[CheckFinding, ...]


@dataclass(frozen=True, slots=True)
class ConnectorAction:
    """What ``shardmerge connect restart``, ``delete`` and ``prepare`` did for one connector.

    Attributes:
        source: The source that it reads.
        name: Its name in Kafka Connect.
        done: ``restarted``, ``deleted``, ``prepared``, or ``there was none``.
    """

    source: str
    name: str
    done: str


@dataclass(frozen=True, slots=True)
class AskedServer:
    """A server that ``shardmerge init`` asked.

    Attributes:
        name: Of a source; ``target`` for the target.
        address: Host and port.
        kind: ``mysql``, ``mariadb`` or ``tidb``; "" when it was not read.
        version: What it calls its version; "" when it was not read.
        tables: Of a source, as ``database.table``, sorted.
        why: Why it was not read; "" when it was.
    """

    name: str
    address: str
    kind: str
    version: str
    tables: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class WrittenArchive:
    """What ``shardmerge sink-archive`` prints.

    Attributes:
        file: The archive that it wrote.
        python: Path of Python on the workers, to which the archive links.
        packages: The packages in it, as ``name==version``.
    """

    file: str
    python: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What ``shardmerge init`` prints.

    Attributes:
        file: The pipeline file that it wrote.
        servers: The sources, then the target.
        missing: Environment variables with passwords, which are not set here.
        then: The commands that come next, for a shell.
    """

    file: str
    servers: tuple[AskedServer, ...]
    missing: tuple[str, ...]
    then: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExportedPart:
    """One partition in a bundle.

    Attributes:
        topic: Its topic.
        partition: Its number.
        begin: The offset of its first record.
        end: The offset behind its last record.
        records: Their number; commit markers and compaction make it less than ``end`` - ``begin``.
    """

    topic: str
    partition: int
    begin: int
    end: int
    records: int


@dataclass(frozen=True, slots=True)
class Exported:
    """What ``shardmerge export`` prints.

    Attributes:
        file: The bundle that it wrote.
        size: Of the file, in bytes.
        parts: What it holds.
        missing: Topics that do not exist, so the bundle lacks them.
    """

    file: str
    size: int
    parts: tuple[ExportedPart, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DdlFinding:
    """A statement that ``shardmerge ddl check`` could not parse, or not apply.

    Attributes:
        kind: ``failed`` when it is not understood; ``not applicable`` when it does not apply to the
            tables of ``--fixture``.
        statement: Its number in the file, from 1 on.
        line: Of what is not understood, else of the statement's first character, from 1 on.
        column: Of what is not understood, from 1 on; 0 when it is not applicable.
        text: What is wrong.
        hint: What helps; "" when nothing is known.
        code: Such as ``SM-1101``.
    """

    kind: str
    statement: int
    line: int
    column: int
    text: str
    hint: str
    code: str


@dataclass(frozen=True, slots=True)
class CheckedDdl:
    """What ``shardmerge ddl check`` prints.

    Attributes:
        parsed: How many statements were understood.
        ignored: How many were ignored, because they concern no table's schema.
        failed: How many were not understood; with any the exit code is 1.
        findings: In the order of the file.
    """

    parsed: int
    ignored: int
    failed: int
    findings: tuple[DdlFinding, ...]


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What ``shardmerge target compact`` and ``expire`` did to one table.

    Attributes:
        table: As ``database.table``.
        counts: Iceberg's name of a count, such as ``rewritten_data_files_count``, and the count;
            empty when there was nothing to do.
    """

    table: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StackServer:
    """A server of the local stack.

    Attributes:
        name: Of a source; ``target`` for the target.
        host: Its address.
        port: Its port.
        user: Who may log in.
        password: Of the user; the stack is for trying things out.
    """

    name: str
    host: str
    port: int
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class StartedStack:
    """What ``shardmerge up`` prints.

    Attributes:
        directory: With its data, logs and pid files.
        pipeline_file: That of its pipeline.
        status_pages: Their address.
        kafka: Its bootstrap server.
        connect: The address of Kafka Connect.
        servers: The sources, then the target.
    """

    directory: str
    pipeline_file: str
    status_pages: str
    kafka: str
    connect: str
    servers: tuple[StackServer, ...]
