"""A server whose rounds sum plain vectors and publish nothing.

`python -m experiments.bench.secagg_server FOLDER PORT LENGTH`

Everything except the system is real: the server with its limits, routes, coordinator, database.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import numpy as np

from backend.app import create_app
from backend.composition import Services, build_services
from backend.federation.bounded_mean import Aggregate
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.federation.systems.system import SystemSpec
from backend.releases.blobs import ReleaseDraft
from backend.releases.store import ReleaseStore
from backend.server.http_server import serve_until_stopped
from backend.settings import BackendSettings, load_settings
from protocol.protections import SecureSum
from protocol.releases import ModelEntry, RecallProtocol
from protocol.rounds import RoundManifest
from protocol.tensors import pack

SUMMING, ACTIVE = "summing", "summing_actively"
CLIP = 512.0


class KeepDigest:
    """A strategy that asks for one vector and stores the SHA-256 of the float64 sum."""

    def __init__(self, coordinates: int) -> None:
        self._coordinates = coordinates

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for one tensor."""
        return Plan({"x": (self._coordinates,)})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Publish nothing."""
        return RoundResult(facts={"sum": sha256(total.sums()["x"].data).hexdigest()})


def summing_systems(length: int) -> dict[str, SystemSpec]:
    """Systems with vectors of this length: the default, sparse above 100 devices, and with an active server."""
    protection = SecureSum(clip=CLIP, fraction_bits=8)
    active = SecureSum(clip=CLIP, fraction_bits=8, mode="active", graph="complete")
    strategy = KeepDigest(length - 1)
    return {
        name: SystemSpec(name=name, task=SUMMING, protection=each, strategy=strategy)
        for name, each in ((SUMMING, protection), (ACTIVE, active))
    }


def publish_nothing_much(store: ReleaseStore) -> None:
    """Publish a first release, which rounds require; nobody runs its graphs."""
    graph = store.add_blob(b"no graph: nobody runs it")
    basis = np.eye(2, 3, dtype=np.float32)
    weights = store.add_blob(pack({"basis_keys": basis, "basis_values": basis}))
    store.commit(
        ReleaseDraft(
            encoder="none",
            dimensions=3,
            opset=18,
            recall=RecallProtocol(
                basis_size=2, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2
            ),
            models={
                "recall": ModelEntry(architecture="basis", role="recall", graphs={"context": graph}, weights=weights),
                "ranker.cosine": ModelEntry(architecture="cosine", role="ranker", graphs={"score": graph}),
            },
            default_ranker="ranker.cosine",
        ),
        note="for a bench",
    )


def summing_services(settings: BackendSettings, length: int) -> Services:
    """Return the server's parts with these systems instead of its own."""
    services = build_services(settings)
    if services.releases.current() is None:
        publish_nothing_much(services.releases)
    services.coordinator = Coordinator(
        services.engine, services.releases, summing_systems(length), settings.data_dir, storage=services.storage
    )
    return services


def main(folder: Path, port: int, length: int) -> None:
    """Serve until killed."""
    settings = load_settings(data_dir=folder, port=port, requests_per_minute=0, requests_per_minute_in_all=0)
    serve_until_stopped(create_app(services=summing_services(settings, length)), settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
