# mypy: disable-error-code="import-not-found"
"""Runs Flower's secure aggregation functions on the same work as `bench secagg`, and prints JSON.

It imports nothing of Ownfeed, so that it also runs in an environment that has only flwr.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np
from flwr import __version__
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import encrypt, generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen, share_keys_plaintext_concat
from flwr.supercore.primitives.asymmetric import generate_key_pairs, private_key_to_bytes

RANGE = 1 << 32


def main(clients: int, length: int, threshold: int, dropouts: int) -> dict[str, float | str]:
    """Print processor seconds of one client, and of the server without and with dropouts."""
    others = [generate_key_pairs() for _ in range(clients - 1)]
    shape = [(length,)]

    started = time.process_time()
    (secret1, public1), (secret2, _) = generate_key_pairs(), generate_key_pairs()
    seed = os.urandom(32)
    seed_shares = create_shares(seed, threshold, clients)
    key_shares = create_shares(private_key_to_bytes(secret1), threshold, clients)
    for place, (_, public) in enumerate(others):
        text = share_keys_plaintext_concat(1, place, seed_shares[place], key_shares[place])
        encrypt(generate_shared_key(secret2, public), text)
    shares_sec = time.process_time() - started

    vector = [np.random.default_rng(7).integers(0, 2**20, length, dtype=np.int64)]
    started = time.process_time()
    masked = parameters_addition(vector, pseudo_rand_gen(seed, RANGE, shape))
    for place, (_, public) in enumerate(others):
        mask = pseudo_rand_gen(generate_shared_key(secret1, public), RANGE, shape)
        masked = (parameters_addition if place % 2 else parameters_subtraction)(masked, mask)
    masked = parameters_mod(masked, RANGE)
    masking_sec = time.process_time() - started

    def unmask(alive: int) -> float:
        begun = time.process_time()
        total = [np.zeros(length, dtype=np.int64)]
        for _ in range(alive):
            total = parameters_addition(total, masked)
        total = parameters_mod(total, RANGE)
        for _ in range(alive):
            joined = combine_shares(seed_shares[:threshold])
            total = parameters_subtraction(total, pseudo_rand_gen(joined, RANGE, shape))
        for _ in range(clients - alive):
            combine_shares(key_shares[:threshold])
            for _, public in others[:alive]:
                mask = pseudo_rand_gen(generate_shared_key(secret1, public), RANGE, shape)
                total = parameters_subtraction(total, mask)
        parameters_mod(total, RANGE)
        return time.process_time() - begun

    _ = public1
    return {
        "version": __version__,
        "shares_sec": shares_sec,
        "masking_sec": masking_sec,
        "server_sec": unmask(clients),
        "server_dropouts_sec": unmask(clients - dropouts),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*map(int, sys.argv[1:]))))
