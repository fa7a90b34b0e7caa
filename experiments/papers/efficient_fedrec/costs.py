"""Computes what a round of FedRec(BERT) and of Efficient-FedRec costs a reader and the server, by the size of BERT."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from experiments.datasets.samples import TrainingSamples
from experiments.papers.efficient_fedrec.training import SplitModels, device_gradients
from models.shapes import NEGATIVES, PAPER_DIM

VOCABULARY, HEAD_WIDTH, GROWTH = 30_522, 64, 4
"""Properties of BERT: word pieces, width of an attention head, and how many times wider its inner layer is."""
TITLES, PIECES = 32, 16
"""Number of titles timed at once, and word pieces of a title, MIND's average."""
READERS = 20


@dataclass(frozen=True)
class PaperCosts:
    """A row of table 3: millions of numbers per reader and round, and seconds per round."""

    layers: int
    width: int
    auc: float | None = None
    numbers: float | None = None
    client: float | None = None
    server: float | None = None
    fedrec_numbers: float | None = None
    fedrec_client: float | None = None


SIZES = {
    "Tiny": PaperCosts(2, 128, 64.21, 2.18, 0.02, 2.05, 10.01, 0.69),
    "Mini": PaperCosts(4, 256, 65.55, 2.18, 0.02, 3.20, 23.74, 2.44),
    "all-MiniLM-L6-v2": PaperCosts(6, 384),
    "Small": PaperCosts(4, 512, 65.92, 2.18, 0.02, 5.88, 59.32, 9.03),
    "Medium": PaperCosts(8, 512, 67.05, 2.18, 0.02, 6.39, 84.54, 19.55),
    "Base": PaperCosts(12, 768, 67.44, 2.18, 0.02, 6.74, 221.29, 51.92),
    "Large": PaperCosts(24, 1_024, 67.50, 2.18, 0.02, 8.81, 673.28, 117.04),
}


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the least CPU seconds of two calls."""
    found = []
    for _ in range(2):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def news_model(size: str) -> tuple[int, float]:
    """Return the parameters of a news model with BERT of this size, and its CPU seconds per title, forward and
    backward.

    Its weights are random, which changes neither.
    """
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    sizes = SIZES[size]
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=max(1, sizes.width // HEAD_WIDTH),
        intermediate_size=GROWTH * sizes.width,
    )
    bert, head = BertModel(config, add_pooling_layer=False), torch.nn.Linear(sizes.width, PAPER_DIM)
    pieces = torch.randint(VOCABULARY, (TITLES, PIECES))
    seconds = cpu_seconds(lambda: head(bert(input_ids=pieces).last_hidden_state.mean(dim=1)).sum().backward())
    return sum(each.numel() for part in (bert, head) for each in part.parameters()), seconds / TITLES


def user_model(models: SplitModels, samples: TrainingSamples) -> float:
    """Return the CPU seconds of a reader's gradients, given news vectors, averaged over some readers."""
    rng = np.random.default_rng(0)
    readers = rng.choice(samples.readers, READERS, replace=False)
    batches = [samples.of_reader(int(reader)) for reader in readers]
    drawn = [(samples.clicks[rows], samples.candidates(rows, NEGATIVES, rng)) for rows in batches]
    return cpu_seconds(lambda: [device_gradients(models, *each) for each in drawn]) / READERS
