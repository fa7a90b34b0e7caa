"""The arithmetic of privacy in both runtimes: the same random bits give the same draws, and charges the same results.

Oracles: the Python device, and scipy for the distributions. Figures that use logarithms and exponentials must agree to
one part in 10^9; integers, draws and refusals must be equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Context
from fractions import Fraction
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import stats

from device_app.errors import BudgetSpent
from device_app.privacy import noise_share
from device_app.privacy.accounting.composition import ChargeGroup, composed
from device_app.privacy.accounting.cost_of_sums import OneClick, sum_prices
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import CHANNELS
from device_app.privacy.exact_samplers import bernoulli_exp, randomised_response, rational, uniform_below
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.noise_share import add_noise_share, clip_and_encode, discrete_gaussian
from device_app.privacy.noise_sources import NoiseSource, SeededNoise
from device_app.privacy.reporter import ReportInput
from device_app.privacy.sealed import Charge
from device_app.privacy.settings import PrivacySettings
from device_app.reports.reporters import InterestReporter, affordable
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.view_models.modes import report_worth
from protocol.concentrated import epsilon_of, rho_of_sum, rho_within
from protocol.protections import SecureSum
from protocol.releases import BlobRef, Codebook, RecallProtocol
from protocol.ring import FixedPoint
from tests.conformance.node_end import ask_node
from tests.doubles.sealing import allowing

LAW_DRAWS, RARE = 200_000, 1e-6
Question = tuple[str, Any, Callable[[Any], bool]]

pytestmark = pytest.mark.node


class CountedNoise:
    """Random bits from a key, and how many bytes were drawn."""

    def __init__(self, seed: str) -> None:
        self.key = sha256(f"ownfeed simulated noise {seed}".encode()).hexdigest()
        self.used = 0
        self._source = SeededNoise(seed)

    def uniform_bits(self, n: int) -> bytes:
        self.used += n
        return self._source.uniform_bits(n)


class GivenBytes:
    """A noise source that returns these bytes in order."""

    def __init__(self, content: bytes) -> None:
        self._stream = BytesIO(content)

    def uniform_bits(self, n: int) -> bytes:
        return self._stream.read(n)


def same(value: Any) -> Callable[[Any], bool]:
    return lambda answer: bool(answer == value)


def near(value: Any) -> Callable[[Any], bool]:
    """Return whether two values have the same structure and numbers equal to one part in 10^9."""

    def fits(answer: Any, value: Any = value) -> bool:
        if isinstance(value, dict):
            return answer.keys() == value.keys() and all(fits(answer[name], each) for name, each in value.items())
        if isinstance(value, list | tuple):
            return len(answer) == len(value) and all(map(fits, answer, value))
        if isinstance(value, float):
            return math.isclose(answer, value, rel_tol=1e-9, abs_tol=1e-12)
        return bool(answer == value)

    return fits


def draw_question(what: str, seed: str, asked: dict[str, Any], draw: Callable[[NoiseSource], Any]) -> Question:
    """Return a question whose answer must be Python's draws from the same bits, with equally many bits used."""
    noise = CountedNoise(seed)
    values = draw(noise)
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return what, {"key": noise.key, **asked}, same({"draws": listed, "used": noise.used})


def samplers() -> list[Question]:
    rng = Random("samplers")
    found: list[Question] = []
    for place in range(60):
        bound, n = rng.choice((1, 2, 3, 16, 1_000, 2**40, 2**40 - 1)), rng.randint(0, 50)
        found.append(
            draw_question("uniform", f"u{place}", {"bound": bound, "n": n}, partial(uniform_below, bound=bound, n=n))
        )
        denominator = rng.choice((1, 3, 2**20))
        numerators = [rng.randint(0, 4 * denominator) for _ in range(rng.randint(1, 30))]
        found.append(
            draw_question(
                "bernoulli",
                f"b{place}",
                {"numerators": numerators, "denominator": denominator},
                partial(bernoulli_exp, numerators=np.array(numerators, dtype=np.int64), denominator=denominator),
            )
        )
        size, epsilon = rng.choice(((16, 4.0), (64, 8.0), (2, 0.1), (1_024, 1 / 3)))
        truths = [rng.randrange(size) for _ in range(rng.randint(1, 40))]
        found.append(
            draw_question(
                "response",
                f"r{place}",
                {"truths": truths, "size": size, "epsilon": epsilon},
                partial(randomised_response, true=np.array(truths, dtype=np.int64), size=size, epsilon=epsilon),
            )
        )
        sigma = rng.choice((1, 2, 7, 4_900, 2**20, 2**24))
        found.append(
            draw_question(
                "gaussian",
                f"g{place}",
                {"sigma": sigma, "size": n},
                partial(discrete_gaussian, sigma, n),
            )
        )
    return found


def edges_of_coins() -> list[Question]:
    """Return words that 64 bits don't decide, words that they do, and cases of rounded epsilons."""
    found: list[Question] = []
    for place, exponent in enumerate(
        (Fraction(1), Fraction(1, 3), Fraction(45), Fraction(0), Fraction(700), Fraction(7, 2))
    ):
        edge = int(Fraction(math.exp(-exponent)) * 2**64)
        digits = Context(prec=60)
        exact = int(Fraction(digits.exp(-digits.divide(exponent.numerator, exponent.denominator))) * 2**64)
        for word in {0, exact, exact + 1, max(0, exact - 1), max(0, edge - 2**14), edge + 2**14, 2**64 - 1}:
            word = min(word, 2**64 - 1)
            reported = [str(exponent.numerator), str(exponent.denominator)]
            found.append(
                draw_question(
                    "at_most_exp",
                    f"e{place} {word}",
                    {"word": str(word), "exponent": reported},
                    partial(noise_share._decide, word, exponent),
                )
            )
    for epsilon in (4.0, 8.0, 1 / 3, 2.0**-20, 1e-6 + 2.0**-20, 63.999999):
        exact_epsilon = rational(epsilon)
        found.append(("rational", epsilon, same([exact_epsilon.numerator, exact_epsilon.denominator])))
    return [*found, ("rational", 2.0**-21, same("refused")), ("rational", -1, same("refused"))]


def _steps_alike(mine: Any, theirs: Any) -> bool:
    (name, (value, *rows)), (their_name, (their_value, *their_rows)) = mine, theirs
    same_value = (name, list(value)) == (their_name, their_value) and len(rows) == len(their_rows)
    return same_value and all(np.allclose(one, other, atol=1.1e-4) for one, other in zip(rows, their_rows, strict=True))


def codes() -> list[Question]:
    found: list[Question] = []
    rng = np.random.default_rng(3)
    for _ in range(1_000):
        prototypes, user = rng.normal(size=(16, 32)).astype(np.float32), rng.normal(size=32).astype(np.float32)
        asked = {"prototypes": prototypes.tobytes().hex(), "user": user.tobytes().hex()}
        found.append(("nearest", asked, same(nearest(prototypes, user))))
    for place in range(200):
        # Weights are rounded to four decimals, where a double's last digit may turn: one step is allowed.
        clicks = rng.normal(size=(int(rng.integers(1, 50)), 32)).astype(np.float32)
        labels = rng.permutation(np.arange(len(clicks)) % int(rng.integers(1, 6))).astype(np.int64)
        searched = rng.normal(size=32).astype(np.float32) if place % 2 else None
        prototypes = rng.normal(size=(16, 32)).astype(np.float32)
        by = InterestReporter(
            mechanism=RandomisedCode(16, 4.0),
            codebook=Codebook(size=16, epsilon=4.0, prototypes=BlobRef(sha256="ab" * 32, size_bytes=9)),
            prototypes=prototypes,
        )
        reader = by.decomposed(ReportInput(clicks, searched=searched), labels, lambda: (np.zeros((0, 0)), ()))
        about: dict[str, Any] = {
            "prototypes": prototypes.tobytes().hex(),
            "clicks": clicks.tobytes().hex(),
            "labels": labels.tolist(),
            "searched": None if searched is None else searched.tobytes().hex(),
        }
        found.append(("interest", about, partial(_steps_alike, [by.meaning.mechanism, by.shown(reader)])))
    twice = np.ones((2, 4), dtype=np.float32)
    found.append(("nearest", {"prototypes": twice.tobytes().hex(), "user": twice[0].tobytes().hex()}, same(0)))
    blob = BlobRef(sha256="ab" * 32, size_bytes=9)
    books = tuple(Codebook(size=k, epsilon=e, prototypes=blob) for k, e in ((16, 4.0), (64, 8.0), (8, 4.0), (4, 1.0)))
    protocol = RecallProtocol(
        basis_size=30, channels_limit=5, cluster_distance=0.7, score_clip=0.2, score_noise=1.2, codebooks=books
    )
    for limit in (0.5, 1.0, 4.0, 7.9, 8.0, 100.0):
        book = affordable(protocol, limit)
        asked_of = {"protocol": protocol.model_dump_json(), "limit": limit}
        found.append(("affordable", asked_of, same(None if book is None else [book.size, book.epsilon])))
    for code in range(16):
        noise = CountedNoise(f"report {code}")
        report = {"kind": "code", "codebook": 16, "code": RandomisedCode(16, 4.0).release(code, noise)}
        reported = {"protocol": protocol.model_dump_json(), "key": noise.key, "code": code}
        found.append(("report", reported, same(json.dumps(report, separators=(",", ":")))))
    found += [("truth", [k, e], near(RandomisedCode(k, e).truth)) for k, e in ((16, 4.0), (64, 8.0), (2, 0.1))]
    return found


def noisy_codes() -> list[Question]:
    found: list[Question] = []
    rng = np.random.default_rng(5)
    for place in range(40):
        fixed = FixedPoint(32, 16, 1.0, 50, 1e6)
        values = rng.normal(size=20) * rng.choice((0.001, 0.1, 10.0))
        sigma = int(rng.choice((1, 300, 4_900)))
        noise = CountedNoise(f"noisy {place}")
        code = clip_and_encode(values, 0.7, fixed)
        made = [code.codes.tobytes().hex(), add_noise_share(code, sigma, noise, 32).tobytes().hex()]
        reported = {
            name: getattr(fixed, name) for name in ("bits", "fraction_bits", "bound", "contributors", "headroom")
        }
        asked = {"key": noise.key, "values": values.tolist(), "norm": 0.7, "sigma": sigma, "fixed": reported}
        found.append(("noisy", asked, same(made)))
    return found


def prices() -> list[Question]:
    rng = Random("prices")
    found: list[Question] = []
    for _ in range(25):
        steps, sigma, members, numbers = (
            rng.uniform(1, 1e6),
            rng.randint(1, 9_000),
            rng.randint(1, 300),
            rng.randint(1, 9_000),
        )
        rho = rho_of_sum(steps, sigma, members, numbers)
        figures = [rho, epsilon_of(rho, 1e-6), rho_within(2.0, 1e-6) if numbers % 5 == 0 else 0]
        found.append(("concentrated", [steps, sigma, members, numbers, 1e-6], near(figures)))
        protection = SecureSum(clip=0.1, sigma=sigma, nonnegative=rng.random() < 0.5)
        click = OneClick(rng.uniform(0.001, 0.3), rng.randint(1, 9))
        priced = sum_prices(protection, members, numbers, 1e-6, one_click_steps=click.steps(2.0**-16))
        asked = {
            "protection": protection.model_dump_json(), "survivors": members, "coordinates": numbers, "delta": 1e-6,
            "click": [click.distance, click.coordinates],
        }  # fmt: skip
        reported = {"parameters": dict(priced.parameters), "epsilon": priced.epsilon, "possible": priced.possible}
        found.append(("prices", asked, near(reported)))
    for size, epsilon in ((16, 4.0), (64, 8.0), (5, 4.0)):
        found.extend(
            ("report_worth", ["code", size, epsilon, news], same(report_worth("code", size, epsilon, news)))
            for news in (0, 1, 400, 401, 900, 12_312, 20_011, 41_312, 77_777, 250_000)
        )
    charged: list[list[ChargeGroup]] = [
        [
            ("reports", "code", {"size": 16.0, "epsilon": 4.0}, 4.0, 0.0, count),
            ("reports", "code", {"size": 64.0, "epsilon": 0.5}, 0.5, 0.0, 2 * count),
            ("training", "secure_sum", {"rho": 0.01 * count}, 3.0, 1e-6, count),
            ("reports", "topics", {}, 0.25, 0.0, count),
        ]
        for count in range(1, 11)
    ]
    # more prices than are worked out together
    charged.append([("reports", "code", {"size": 16.0}, 1 + math.sqrt(each) / 10, 0.0, 5) for each in range(2, 9)])
    for groups in charged:
        whole = composed(groups)
        names = ("mechanism", "parameters", "epsilon", "delta", "count")
        asked_of = [dict(zip(names, each[1:], strict=True)) for each in groups]
        sums = {
            "bySum": whole.by_sum, "deltaBySum": whole.delta_by_sum, "byLoss": whole.by_loss, "charges": whole.charges,
            "sums": whole.sums,
        }  # fmt: skip
        found.append(("composed", asked_of, near(sums)))
    return found


def ledgers(folder: Path) -> list[Question]:
    """Return random charges over five days, some without a limit: the result of each, and what was left."""
    rng = Random("ledgers")
    ceilings = {
        name: value for name, value in PrivacySettings().model_dump().items() if name.startswith(("epsilon", "delta"))
    }
    found: list[Question] = []
    for place in range(12):
        own = ceilings | {f"epsilon_per_day_{channel}": rng.choice((2.0, 8.0, 150.0)) for channel in CHANNELS}
        own |= {f"epsilon_lifetime_{channel}": rng.choice((None, 9.0, 40.0)) for channel in CHANNELS}
        settings = PrivacySettings(**own)
        now = [datetime(2026, 11, 20, tzinfo=UTC)]
        ledger = Ledger(
            LedgerRepository(Database(folder / f"{place}.sqlite")), allowing(settings), partial(now.__getitem__, 0)
        )
        asked, outcomes = [], []
        for _ in range(40):
            now[0] += timedelta(seconds=rng.randint(0, 20_000))
            sums = {"rho_alone": rng.choice((0.5, 5.0)), "rho": 0.1} if rng.random() < 0.3 else {}
            charge = Charge(
                rng.choice((*CHANNELS, "none")),
                "test",
                sums,
                rng.choice((0.0, 0.25, 1 / 3, 4.0, -1.0)),
                rng.choice((0.0, 1e-6)),
            )
            asked.append({"at": int(now[0].timestamp() * 1_000), "charge": vars(charge) | {"payloadSha256": ""}})
            outcomes.append(_outcome(ledger, charge))
        left = [ledger.left(channel) for channel in CHANNELS]
        found.append(("ledger", {"ceilings": own, "charges": asked}, near({"outcomes": outcomes, "left": left})))
    return found


def _outcome(ledger: Ledger, charge: Charge) -> str | list[str | float | bool]:
    try:
        ledger.spend(charge)
    except BudgetSpent as spent:
        return [spent.channel, spent.wanted, spent.left, spent.lifetime]
    except ValueError:
        return "refused"
    return "spent"


def follows(chances: dict[int, float]) -> Callable[[Any], bool]:
    """Return a check that counts follow a distribution, by chi-square with rare values grouped."""

    def fits(counts: dict[str, int]) -> bool:
        common = [value for value, chance in chances.items() if chance * LAW_DRAWS >= 20]
        seen = [counts.get(str(value), 0) for value in common]
        distribution = [chances[value] * LAW_DRAWS for value in common]
        rest = LAW_DRAWS - sum(distribution)
        if rest >= 1:
            seen, distribution = [*seen, LAW_DRAWS - sum(seen)], [*distribution, rest]
        scaled = np.array(distribution) / sum(distribution) * sum(seen)
        return sum(counts.values()) == LAW_DRAWS and float(stats.chisquare(seen, scaled).pvalue) > RARE

    return fits


def distributions() -> list[Question]:
    other = 1 / (math.e + 15)  # epsilon 1: at 4 most draws are thrown away, which tells no more and takes seconds
    chances = {code: math.e * other if code == 1 else other for code in range(16)}
    asked = {"key": CountedNoise("law of codes").key, "truth": 1, "size": 16, "epsilon": 1.0, "n": LAW_DRAWS}
    weights = {value: math.exp(-(value**2) / 50) for value in range(-60, 61)}
    whole = math.fsum(weights.values())
    reported = {"key": CountedNoise("law of noise").key, "sigma": 5, "n": LAW_DRAWS}
    return [
        ("response_law", asked, follows(chances)),
        ("gaussian_law", reported, follows({value: each / whole for value, each in weights.items()})),
    ]


def test_random_draws_prices_and_ledger_results_match_in_both_runtimes(tmp_path: Path) -> None:
    groups = (samplers, edges_of_coins, codes, noisy_codes, prices, distributions)
    questions = [question for group in groups for question in group()] + ledgers(tmp_path)
    different = {"sizes": [70_000, 70_000], "same": False, "values": 256}
    questions.append(("system", 70_000, same(different)))
    answers = ask_node([(what, given) for what, given, _ in questions])
    for (what, given, fits), answer in zip(questions, answers, strict=True):
        assert fits(answer), (what, str(given)[:1_500], str(answer)[:1_500])


def test_distribution_check_detects_a_wrong_distribution() -> None:
    noise = SeededNoise("wrong law")
    codes = randomised_response(noise, np.full(LAW_DRAWS, 1, dtype=np.int64), 16, 4.0)
    counts = {str(code): int(n) for code, n in enumerate(np.bincount(codes, minlength=16))}
    other = 1 / (math.exp(4.1) + 15)
    assert not follows({code: math.exp(4.1) * other if code == 1 else other for code in range(16)})(counts)


def test_integers_below_a_bound_are_uniform_at_64_bit_boundaries() -> None:
    """Each number below a bound has equally many of the 2^64 words; exactly the remaining words are drawn again."""
    questions: list[Question] = []
    for bound in (3, 16, 1_000, 2**40 - 1):
        each = 2**64 // bound
        beyond = [word for word in (each * bound, 2**64 - 1) if word < 2**64 and 2**64 % bound]
        kept = [0, bound - 1, bound, each * bound - 1, (each - 1) * bound]
        stream = [*beyond, *kept, *range(len(beyond))]
        words = b"".join(word.to_bytes(8, "little") for word in stream)
        wanted = [*range(len(beyond)), *(word % bound for word in kept)]
        asked = {"words": words.hex(), "bound": bound, "n": len(beyond) + len(kept)}
        questions.append(("words_below", asked, same({"draws": wanted, "used": len(words)})))
        assert uniform_below(GivenBytes(words), bound, len(beyond) + len(kept)).tolist() == wanted
    answers = ask_node([(what, given) for what, given, _ in questions])
    assert all(fits(answer) for (_, _, fits), answer in zip(questions, answers, strict=True)), answers
