"""Uni-FedRec's recall model (EMNLP Findings 2021, section 3.5): theta 0.1, lambda_g 0.01, omega 0.05, K = 4.

The paper's protection costs 20 a coordinate and 4.9 million for a whole update: the honest figure is what the device
charges to its ledger and shows, and the reader's settings decide whether it may be spent.
"""

from __future__ import annotations

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import LOCAL_NOISE

UNI_FEDREC_AS_PRINTED = SystemSpec(
    name="uni_fedrec_as_printed",
    architecture="basis",
    model="recall",
    task="recall",
    protection=LOCAL_NOISE["recall"],
    strategy=FedAvg(),
    optimizer=Sgd(learning_rate=0.05),
    negatives=4,
    samples_limit=32,
)
