from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.local.install import jmx_exporter as module
from shardmerge.local.install.jmx_exporter import jmx_exporter, jmx_option
from shardmerge.schemas.model.errors import StackError


def fetching(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[str]:
    """Ivy is replaced: it brings a jar with this content. Returns what it was asked for."""
    asked: list[str] = []

    def retrieve(ivy_file: Path, retrieved: Path, *_: object) -> None:
        asked.append(ivy_file.name)
        (retrieved / "jmx").mkdir(parents=True)
        (retrieved / "jmx" / "jmx_prometheus_javaagent-1.0.1.jar").write_bytes(content)

    monkeypatch.setattr(module, "retrieve", retrieve)
    return asked


def test_another_content_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching(monkeypatch, b"other")
    with pytest.raises(StackError, match=r"jmx_prometheus_javaagent-1\.0\.1\.jar: expected"):
        jmx_exporter(tmp_path)
    assert not (tmp_path / "jmx").exists()


def test_what_is_there_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fetching(monkeypatch, b"pinned")
    monkeypatch.setattr(module, "verify_checksums", lambda *_: None)
    jars = {jmx_exporter(tmp_path) for _ in range(2)}
    assert jars == {tmp_path / "jmx" / "jmx" / "jmx_prometheus_javaagent-1.0.1.jar"}
    assert asked == ["ivy-jmx.xml"]


def test_the_exporter_listens_on_the_loopback_address_only() -> None:
    option = jmx_option(Path("/a.jar"), 9404, Path("/r.yml"))
    assert option == "-javaagent:/a.jar=127.0.0.1:9404:/r.yml"
