"""Shards as an option or a rollout file names them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Pipeline

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


def shard_of(text: str, where: str) -> ShardId:
    """``source/database.table`` as a shard.

    Raises:
        ConfigError: The text has another form.
    """
    source, slash, rest = text.partition("/")
    database, dot, table = rest.partition(".")
    if not (source and slash and database and dot and table):
        raise ConfigError(
            f"{where}: a shard is source/database.table, not {text!r}", code="SM-5601"
        )
    return ShardId(source, database, table)


def expanded(text: str) -> Iterator[str]:
    """All texts that a text with braces, such as ``t_{1..3}`` or ``{a,b}``, stands for."""
    found = _BRACES.search(text)
    if found is None:
        yield text
        return
    told = _RANGE.fullmatch(found[1])
    words = found[1].split(",")
    if told is not None:
        first, last, width = int(told[1]), int(told[2]), len(told[1])
        pad = width if told[1].startswith("0") else 0
        words = [str(number).zfill(pad) for number in range(first, last + 1)]
    for word in words:
        yield from expanded(text[: found.start()] + word + text[found.end() :])


def named_shards(
    texts: Iterable[str], live: Iterable[ShardId], pipeline: Pipeline, where: str
) -> list[ShardId]:
    """The shards that texts name, each once, in the order of the texts.

    Args:
        texts: Each is ``source/database.table``. Braces are expanded (``expanded``). A text with
            ``*``, ``?`` or ``[…]`` stands for all live shards whose name fits.
        live: The live shards, sorted.
        pipeline: The shards must be of its sources.
        where: How messages name the place of the texts.

    Raises:
        ConfigError: A text names no shard, names a source that the pipeline does not have, or fits
            no live shard.
    """
    sources = {source.name for source in pipeline.sources}
    known = list(live)
    found: dict[ShardId, None] = {}
    for text in (each for whole in texts for each in expanded(whole)):
        if any(sign in text for sign in "*?["):
            fit = [shard for shard in known if fnmatchcase(str(shard), text)]
            if not fit:
                raise ConfigError(
                    f"{where}: no live shard fits {text!r}",
                    hint=f"live shards: {len(known)}, such as {', '.join(map(str, known[:3]))}",
                    code="SM-5601",
                )
            found.update(dict.fromkeys(fit))
            continue
        shard = shard_of(text, where)
        if shard.source not in sources:
            raise ConfigError(
                f"{where}: the pipeline has no source {shard.source!r}",
                hint=f"its sources: {', '.join(sorted(sources))}",
                code="SM-5103",
            )
        found[shard] = None
    return list(found)
