"""Figures of the stand-in device behind the pages.

Its reports and charges, its training, its latencies.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random

from device_app.privacy.accounting.composition import composed
from device_app.ranking.groups import OwnGroup
from device_app.settings import PrivacySettings
from device_app.store.ledger_entries import DaySum
from device_app.view_models.latency import LatencyView, latency_view, waterfall
from device_app.view_models.modes import PoolFacts, mechanism_facts, mode_facts
from device_app.view_models.privacy import (
    AloneView,
    BudgetView,
    ChainHead,
    CountFacts,
    PrivacyView,
    ReportPair,
    SourceFacts,
    SourcesView,
    SumCost,
)
from device_app.view_models.traffic import ShownTraffic, TodayView
from device_app.view_models.training import RoundFacts, TrainingView, UpdateFacts
from protocol.protections import LOCAL_NOISE
from protocol.releases import BlobRef, Codebook, RecallProtocol
from protocol.rounds import RoundStatus
from tests.doubles.pages_traffic import Kind, log

_BLOB = BlobRef(sha256="ab" * 32, size_bytes=1)
PROTOCOL = RecallProtocol(
    basis_size=30,
    channels_limit=5,
    cluster_distance=1,
    score_clip=0.2,
    score_noise=1.2,
    codebooks=(Codebook(size=16, epsilon=4, prototypes=_BLOB), Codebook(size=64, epsilon=8, prototypes=_BLOB)),
    pool_codes=True,
)


def privacy_view(
    kind: Kind, settings: PrivacySettings, now: datetime, page: int, shown: ShownTraffic | None
) -> PrivacyView:
    """A day of requests, a ledger and a report."""
    chance = Random(7)
    clear = tuple(tuple(max(-0.2, min(0.2, chance.gauss(0, 0.15))) for _ in range(30)) for _ in range(3))
    noisy = tuple(tuple(v + chance.choice((-1, 1)) * chance.expovariate(1 / 1.2) for v in row) for row in clear)
    empty, scored = kind == "empty", settings.mode == "basis_laplace"
    cost = 50.0 if scored else 4.0
    reports = BudgetView(
        "reports",
        settings.epsilon_per_day_reports,
        0 if empty else cost,
        max(0.0, settings.epsilon_per_day_reports - (0 if empty else cost)),
        0 if empty else 6 * cost,
        settings.epsilon_lifetime_reports,
    )
    days = tuple(
        DaySum(date(2026, 11, 20) - timedelta(days=k), "reports", cost * (1 + k % 3), 1 + k % 3) for k in range(9)
    )
    pool = None if empty else PoolFacts(12_312, 6_900_000)
    return PrivacyView(
        settings=settings,
        own=settings,
        given=frozenset({"training", "epsilon_per_day_training"} if settings.training else ()),
        modes=mode_facts(settings, PROTOCOL, pool, None if empty else 12_312),
        mechanism=None if empty else mechanism_facts(settings, PROTOCOL),
        composed=composed([] if empty else [("reports", "code", {"size": 16.0, "epsilon": 4.0}, 4.0, 0.0, 6)]),
        pool=pool,
        budgets=(
            reports,
            BudgetView("training", 0.0, 0.0, 0.0, 0.0),
            BudgetView("counts", 6.0, 0.0 if empty else 3.62, 6.0 if empty else 2.38, 0.0 if empty else 5.6),
        ),
        days=() if empty else days,
        log=log(kind, now, page, shown or ("all" if empty else "concerning")),
        report=None
        if empty
        else ReportPair(
            settings.mode,
            now - timedelta(hours=2),
            now + timedelta(hours=22),
            "r3",
            clear if scored else ((5.0,),),
            noisy if scored else ((11.0,),),
            (21, 14, 7) if scored else (),
            ("Ports and ships", "Stars and stones", "Trams") if scored else (),
        ),
        alone=AloneView(0.0 if empty else 21.05, 48.0, 0.0 if empty else 33.2, None, 1e-6),
        counts=()
        if empty
        else (
            CountFacts(
                "round-9",
                now - timedelta(hours=26),
                now - timedelta(hours=2),
                28,
                3,
                SumCost(1e-6, 3.62, 21.05, 1.4, 8.0),
            ),
            CountFacts(
                "round-4", now - timedelta(hours=50), now - timedelta(hours=26), 32, 5, SumCost(1e-6, 1.98, 21.05)
            ),
        ),
        today=TodayView(
            reports=0 if empty else 1,
            again=0 if empty else 5,
            counts=0 if empty else 1,
            rounds=0,
            one_number=not scored,
            spent_before=not empty,
        ),
        chain=None if empty else ChainHead("r3", "1f0a 77c2 9be4 03d8 5a61", "0d4e 9a13 c7b2 58f6", True),
        new_clicks=2,
        clicks_until_report=3,
        sources=SourcesView(
            (
                SourceFacts("Reading", "42 clicks", "Yes", 0 if empty else 11, 0.0 if empty else 15.04),
                SourceFacts("Saved searches and topics", "2 searches, 1 topic", "Yes", 0, 0.0),
            ),
            1e-3,
            apart=kind != "offline",
        ),
    )


def training_view(kind: Kind, settings: PrivacySettings, now: datetime, paused: bool) -> TrainingView:
    """A round under way, or nothing."""
    if kind == "empty":
        off = "Training is switched off on this device."
        return TrainingView(settings, False, off, None, None, (), (), None, looked_at=now - timedelta(minutes=4))
    current = RoundStatus(
        round="round-7",
        system="uni_fedrec",
        state="failed" if kind == "overfull" else "updates",
        release="r3",
        reason="only 11 of 40 updates arrived in time" if kind == "overfull" else None,
        cohort=60,
        cohort_minimum=40,
        joined=60,
        uploaded=23,
        received_bytes=22_540_112,
        opened_at=now - timedelta(seconds=8),
        closes_at=now + timedelta(seconds=52),
    )
    done = tuple(
        RoundFacts(
            f"round-{k}",
            "uni_fedrec",
            f"r{k}",
            "applied" if k else "refused",
            now - timedelta(hours=k * 5),
            980_004,
            4.9e6,
        )
        for k in range(3)
    )
    updates = (
        UpdateFacts("ranker.features", True, 262, LOCAL_NOISE["ranker.features"], 52.4),
        UpdateFacts("ranker.fednewsrec", False, 693_794, LOCAL_NOISE["ranker.fednewsrec"], 462_529.3, 2 / 3),
        UpdateFacts("ranker.multi_view", False, 65_536, None, None),
        UpdateFacts("recall", False, 244_993, LOCAL_NOISE["recall"], 4_899_860.0),
    )
    return TrainingView(
        settings=settings,
        paused=paused,
        why_not=None,
        round=current,
        stage="computing the update",
        updates=updates,
        contributions=done,
        release="r3",
        seen_at=now - timedelta(seconds=5),
        looked_at=now - timedelta(seconds=5),
        alone=AloneView(16.7, 48.0, 33.2, None, 1e-6),
        groups=(OwnGroup("ranker.finding", 2, 4),),
    )


def waterfalls(kind: Kind, now: datetime) -> LatencyView:
    """A hundred requests around 20 ms, or none."""
    if kind == "empty":
        return latency_view(())
    chance = Random(3)
    base = {
        "store": 1.2,
        "cluster": 2.1,
        "decompose": 0.8,
        "noise": 0.3,
        "encode": 0.4,
        "network": 7.5,
        "decode": 1.6,
        "rank": 2.9,
        "build": 2.6,
    }
    server = {"decode": 0.3, "aggregate": 0.1, "search": 1.1, "merge": 0.4, "encode": 1.9}
    return latency_view(
        [
            waterfall(
                now - timedelta(minutes=k),
                "recall",
                {name: ms * chance.lognormvariate(0, 0.3) for name, ms in base.items()},
                server,
            )
            for k in range(100)
        ]
    )
