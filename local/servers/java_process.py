"""What the two Java processes of the local stack share: options, logging, properties files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shardmerge.local.install.artifacts import Artifacts

_LOG4J = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %m (%c{1})%n%rEx{10}
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""
LogLevels = Mapping[str, str]
"""Logger name → level, above or below the root's WARN."""


def write_properties(path: Path, properties: Mapping[str, str | int]) -> Path:
    """Write a Java properties file; only backslashes in the values are escaped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{key}={value}".replace("\\", "\\\\") for key, value in properties.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def java_command(
    artifacts: Artifacts,
    directory: Path,
    heap: str,
    levels: LogLevels,
    *arguments: str,
    jars: Sequence[Path] = (),
) -> tuple[str, ...]:
    """A Java command line over Kafka's jars, which logs to its standard output.

    ``jars`` are folders of further jars.
    """
    loggers = "".join(
        f"logger.l{i}.name = {name}\nlogger.l{i}.level = {level}\n"
        for i, (name, level) in enumerate(levels.items())
    )
    directory.mkdir(parents=True, exist_ok=True)
    log4j = directory / "log4j2.properties"
    log4j.write_text(_LOG4J + loggers)
    return (
        str(artifacts.java),
        f"-Xmx{heap}",
        "-Xms64m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={log4j}",
        "-cp",
        ":".join(f"{folder}/*" for folder in (artifacts.kafka_jars, *jars)),
        *arguments,
    )
