"""Compares the cost of FINDING-HE's encryption with the secure sum, for 1,000 parameters and 60 devices."""

import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np

from backend.federation.secagg.secure_sum import SecureSumServer
from experiments.bench.secagg import StageClock, drive
from experiments.records import Cell, DataMissing, Table
from protocol.secagg import SumTerms

PARAMETERS, DEVICES, WEIGHT_LIMIT, FRACTION_BITS = 1_000, 60, 32, 16
SLOT_BITS = FRACTION_BITS + 1 + (DEVICES * WEIGHT_LIMIT).bit_length() + 1
"""Bits of a slot: for a number with bound 1, summed over 60 devices with 32 samples, and its sign."""
FINDING_SLOT_BITS = 128
"""Bits of a slot with room for FINDING: interpolation takes 12, a step 12 for the rate and some for the samples."""
TIMED = 3
SEED = 7
COLUMNS = (
    "protection",
    "numbers a ciphertext",
    "device s",
    "server s a device",
    "opening s",
    "bytes a device sends",
    "times plain",
    "mean's error",
    "encoding step",
)
T = TypeVar("T")


def run(data: Path) -> list[Table]:
    """Return the bench's table. Raises DataMissing if gmpy2 is not installed."""
    if find_spec("gmpy2") is None:
        raise DataMissing("gmpy2 is not installed: pip install 'ownfeed[he]'")
    rows = [
        _paillier("Paillier 2,048, unpacked", 2_048, 2_046, parameters=40),
        _paillier("Paillier 2,048, packed for FINDING-HE", 2_048, FINDING_SLOT_BITS),
        _paillier("Paillier 2,048, packed for one sum", 2_048, SLOT_BITS),
        _paillier("Paillier 3,072, packed for FINDING-HE", 3_072, FINDING_SLOT_BITS),
        _paillier("Paillier 3,072, packed for one sum", 3_072, SLOT_BITS),
        _secure_sum(),
    ]
    notes = (
        f"{PARAMETERS:,} parameters, {DEVICES} devices of up to {WEIGHT_LIMIT} samples, one thread; unpacked is "
        "measured on 40 and scaled. opening: decrypting or unmasking the sum. Key generation is not counted.",
    )
    return [Table("Paillier beside the secure sum", COLUMNS, rows, notes, seeds=(SEED,))]


def _paillier(name: str, key_bits: int, slot_bits: int, parameters: int = PARAMETERS) -> tuple[Cell, ...]:
    from fractions import Fraction

    from experiments.papers.finding.paillier import Packing, PrivateKey, decrypt, encrypt, weighted_sum

    key, packing = PrivateKey.generate(key_bits), Packing(key_bits, slot_bits, FRACTION_BITS)
    rng = np.random.default_rng(SEED)
    vectors = rng.uniform(-1, 1, (TIMED, parameters))
    counts = rng.integers(1, WEIGHT_LIMIT + 1, DEVICES)
    timed = [
        _timed(lambda row=row: encrypt(vectors[row], key, packing, bound=1.0, weight=int(counts[row])))  # type: ignore[misc]
        for row in range(TIMED)
    ]
    sent = [timed[place % TIMED][1] for place in range(DEVICES)]
    # Ciphertexts are reused with the weight they were made with.
    counts = np.resize(counts[:TIMED], DEVICES)
    adding, total = _timed(lambda: weighted_sum([(Fraction(1, int(counts.sum())), each) for each in sent], key.public))
    opening, mean = _timed(lambda: decrypt(total, key))
    plain = np.average(vectors[np.arange(DEVICES) % TIMED], axis=0, weights=counts)
    error = float(np.abs(mean - plain).max())
    if error > packing.step:
        raise AssertionError(f"the mean under encryption is off by {error}, more than the step {packing.step}")
    scale = PARAMETERS / parameters
    size = sent[0].size_bytes * scale
    return (
        name,
        packing.slots,
        statistics.median(seconds for seconds, _ in timed) * scale,
        adding / DEVICES * scale,
        opening * scale,
        round(size),
        size / (4 * PARAMETERS),
        f"{error:.1e}",
        f"{packing.step:.1e}",
    )


def _secure_sum() -> tuple[Cell, ...]:
    terms = SumTerms.model_validate({
        "round": "round-1", "cohort": DEVICES, "cohort_minimum": DEVICES // 2, "length": PARAMETERS,
        "fraction_bits": FRACTION_BITS, "bound": float(WEIGHT_LIMIT),
    })  # fmt: skip
    client, server = StageClock(), StageClock()
    _, clients = drive(SecureSumServer.begin(terms), terms, client, server, dropouts=0)
    device = sum(statistics.median(each) * (2 if name == "keys" else 1) for name, each in client.cpu.items())
    step = 2.0**-FRACTION_BITS
    return (
        "secure sum, semi-honest, 32-bit ring",
        None,
        device,
        sum(server.cpu["read"]) / DEVICES,
        sum(server.cpu["open"]),
        clients[-1].up_bytes,
        clients[-1].up_bytes / (4 * PARAMETERS),
        f"<= {step / 2:.1e}",
        f"{step:.1e}",
    )


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.thread_time()
    done = work()
    return time.thread_time() - started, done
