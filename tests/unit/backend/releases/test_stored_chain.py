"""The chain of releases as objects. Oracle: the chain's file, which gets the same calls."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from backend.releases.chain_file import ChainFile, NotedRelease, StoredChain
from backend.releases.errors import ChainFileRefused
from backend.storage.object_store import LocalFolder
from protocol.chain import next_head


def chain(length: int) -> list[NotedRelease]:
    found: list[NotedRelease] = []
    for number in range(1, length + 1):
        content = sha256(str(number).encode()).hexdigest()
        head = next_head(found[-1].head if found else None, f"r{number}", content)
        at = datetime(2026, 11, 26, number, tzinfo=UTC)
        found.append(NotedRelease(release=f"r{number}", manifest_sha256=content, published_at=at, head=head))
    return found


@pytest.fixture
def both_chains(tmp_path: Path) -> list[ChainFile]:
    return [ChainFile(tmp_path / "chain.jsonl"), StoredChain(LocalFolder(tmp_path / "chain"))]


def test_object_chain_matches_the_file_chain(both_chains: list[ChainFile]) -> None:
    releases = chain(5)
    for one in both_chains:
        assert one.read() == {}
        one.add(releases[:2])
        one.add(releases[1:])
        assert one.read() == dict(enumerate(releases, 1))
        assert one.lost(releases[:3]) == releases[3:]
        assert one.lost([]) == releases
        assert one.lost(releases) == []


def test_error_for_the_chain_of_another_database_names_the_storage(
    both_chains: list[ChainFile], tmp_path: Path
) -> None:
    releases = chain(3)
    other = releases[2].model_copy(update={"head": "0" * 64})
    for one, name in zip(both_chains, ("chain.jsonl", str(tmp_path / "chain")), strict=True):
        one.add(releases)
        with pytest.raises(ChainFileRefused, match=name):
            one.lost([*releases[:2], other])
    (tmp_path / "chain" / "r2.json").write_text("{")
    with pytest.raises(ChainFileRefused, match=r"r2\.json is not a release"):
        both_chains[1].read()
