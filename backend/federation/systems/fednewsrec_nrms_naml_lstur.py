"""FedNewsRec (EMNLP Findings 2020, section 3.2): delta 0.005, lambda 0.015, eta 0.5, H = 4.

Its user model of 256-d on frozen news vectors: 693,794 parameters. The paper's budget of 2 delta / lambda = 0.667 is
for one coordinate; a whole upload costs 462,529 in pure epsilon, which is what a device charges.

Deviations: devices count alike, where the paper weighs them by n_u (see `strategies.fedavg`); the news model is not
trained on the devices.

NRMS, NAML and LSTUR are trained as it is: another model and nothing else. NRMS (EMNLP 2019): 248,977
parameters. NAML's user model (IJCAI 2019): 51,601. LSTUR-ini (ACL 2019): 393,984, and 256 that stay at home.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.systems.release_gate import GATE_ROUND
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import LOCAL_NOISE

FEDNEWSREC = SystemSpec(
    name="fednewsrec",
    architecture="fednewsrec",
    model="ranker.fednewsrec",
    task="full_gradient",
    protection=LOCAL_NOISE["ranker.fednewsrec"],
    strategy=FedAvg(),
    optimizer=Sgd(learning_rate=0.5),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)


NRMS = replace(FEDNEWSREC, name="nrms", architecture="nrms", model="ranker.nrms")
NAML = replace(FEDNEWSREC, name="naml", architecture="naml", model="ranker.naml")
LSTUR = replace(FEDNEWSREC, name="lstur", architecture="lstur_ini", model="ranker.lstur")
