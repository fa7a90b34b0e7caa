"""A malicious server publishes many releases under one lineage, to learn one bit about the reader from each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.privacy.noise_sources import SeededNoise
from tests.doubles.clock import StillClock
from tests.doubles.malicious_publisher import (
    DIM,
    MaliciousPublisher,
    ask_twice,
    default_device,
    read_articles,
    some_alignment,
    unit,
)
from tests.doubles.news import NOW

MANY = 80
"""Releases of the bits that are counted; of those whose every byte is compared a fraction is enough."""
RELEASES = 32
CLICKS = 24


class Scripted(SeededNoise):
    """A noise source from which the device draws the numbers of a script, whatever the true value."""

    def __init__(self, script: list[int]) -> None:
        super().__init__("scripted")
        self.script, self.drawn = script, 0


@pytest.fixture
def scripted_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each drawn number the script's next one, so that the messages of two readers must be equal."""

    def release(protection: RandomisedCode, code: int, source: Scripted) -> int:
        protection.require(code, "code")
        source.drawn += 1
        return source.script[source.drawn - 1] % protection.size

    monkeypatch.setattr(RandomisedCode, "release", release)


def tactics(server: MaliciousPublisher) -> Iterator[str]:
    """Publish the next forged codebook and name it; each asks about something else."""
    draw = np.random.default_rng(17)
    first = server.prototypes
    for at in range(RELEASES):
        match at % 8:
            case 0:  # another question under one lineage
                side = unit(draw.normal(size=DIM))
                yield server.forged(np.stack([side, -side]))
            case 1:  # the same Gram matrix, and the same encoder
                yield server.forged(first @ some_alignment(at))
            case 2:  # the same Gram matrix, another encoder whose vectors stay as they were
                yield server.forged(first @ some_alignment(at), encoder=f"{at:064x}")
            case 3:  # a reflection
                yield server.forged(first @ some_alignment(at, reflect=True), encoder=f"{at:064x}")
            case 4:  # the same prototypes in another order, under an encoder that was here before
                yield server.forged(first[::-1], encoder="e" * 64)
            case 5:  # nothing changes but the vectors that the encoder is said to make
                server.vectors = unit(server.vectors @ some_alignment(at))
                yield server.forged(server.prototypes)
            case 6:  # the same prototypes and vectors under another name
                yield server.forged(first, encoder=f"{at:064x}")
            case _:  # back to an encoder that was here before, whose vectors now are others
                server.vectors = unit(draw.normal(size=server.vectors.shape))
                yield server.forged(first, encoder="e" * 64)


def played(folder: Path, rows: range, script: list[int]) -> tuple[MaliciousPublisher, float, int]:
    """Run all tactics against a reader; return what was sent, what was charged, and by how many charges."""
    server, clock, noise = MaliciousPublisher(), StillClock(NOW), Scripted(script)
    device = default_device(server, folder, clock, noise)
    server.forged(server.prototypes)
    read_articles(device, server, rows, clock)
    for _ in tactics(server):
        clock.go_on(3 * 3_600)  # eight releases a day: a day's budget is not what ends it
        ask_twice(device, server)
    charged, book = device.privacy.overview().budgets[0].lifetime, device.parts.ledger.repository
    charges = sum(row.epsilon > 0 for row in book.entries().rows)
    device.close()
    return server, charged, charges


def test_codebook_releases_learn_only_functions_of_charged_codes(tmp_path: Path, scripted_draws: None) -> None:
    # The likelihood ratio of two readers' transcripts is the product of the laws' ratios of the numbers drawn, if and
    # only if all else is the same for both: so the draws are fixed, and every byte of two readers must be equal.
    script = np.random.default_rng(5).integers(0, 64, size=2 * RELEASES).tolist()
    one, charged, charges = played(tmp_path / "one", range(CLICKS), script)
    other, charged_other, _ = played(tmp_path / "other", range(60, 60 + CLICKS), script)
    assert one.asked() == other.asked(), "a request differs although nothing that was drawn does"
    assert charged == charged_other == 4 * charges
    assert charged <= 40
    assert len(one.asked()) > RELEASES / 2, "the server went on being asked"


def test_malicious_prototypes_learn_no_more_bits_than_charged(tmp_path: Path) -> None:
    # Random signs of one reader's vector. A number is drawn for each side once; after that, which of the two comes back
    # would tell each sign exactly.
    server, clock = MaliciousPublisher(), StillClock(NOW)
    device = default_device(server, tmp_path, clock)
    server.forged(server.prototypes)
    read_articles(device, server, range(CLICKS), clock)
    device.sync()
    reader = server.pool.vectors[:CLICKS].mean(axis=0)
    sides = unit(np.random.default_rng(7).normal(size=(MANY, DIM)))
    truth, received = [], []
    for side in sides:
        server.forged(np.stack([side, -side]))
        before = len(server.asked())
        clock.go_on(600)
        ask_twice(device, server)
        if len(server.asked()) > before:
            received.append(server.codes()[-1])
            truth.append(int(side @ reader < 0))
    right = np.array(received) == np.array(truth)
    share = max(right.mean(), 1 - right.mean())
    bits = len(right) * (1 + sum(p * np.log2(p) for p in (share, 1 - share) if p > 0))
    charged = device.privacy.overview().budgets[0].lifetime
    device.close()
    allowed = charged / np.log(2)
    # Guesses that are right by chance look like about 3 bits to this estimate.
    assert bits <= allowed + 3, (
        f"{bits:.0f} bits of {len(right)} signs ({share:.1%} right) for {allowed:.1f} bits' charge"
    )
