"""What a step of the news encoder computes batch by batch, as tasks. Brings torch.

Each opens with a number of threads and treats a batch's rows one by one, so that a batch gives the same wherever it is
computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.embedding.batch_executor import ResultRefused, check_array, check_states
from backend.embedding.embedder import TitleBatch
from backend.embedding.weights import find_weights

ModuleInputs = tuple[NDArray[np.float32] | Tensor, ...]
"""Of a news encoder's upper part: states [b, L, S] and their mask [b, L]."""
SlopedBatch = tuple[ModuleInputs, NDArray[np.floating[Any]]]
"""Inputs, and G [b, D], the gradient of the loss for each vector."""


@dataclass(frozen=True)
class FrozenStates:
    """BERT below its top `layers` layers.

    Args:
        bert, bert_sha256: as in the settings; a node has the model where the backend's machine has it.
        width: S; None where it isn't known.
    """

    bert: str
    bert_sha256: str | None
    layers: int
    width: int | None = None

    @property
    def key(self) -> str:
        """By content."""
        return f"states {self.bert} {self.bert_sha256} below {self.layers}"

    def portable(self) -> FrozenStates:
        """Itself: weights are found, and checked, where they are opened."""
        return self

    def open(self, threads: int) -> Callable[[TitleBatch], list[NDArray[np.float16]]]:
        """Token states [L_i, S] of each title. Raises WeightsRefused."""
        from backend.embedding.initial_encoder import load_bert  # transformers takes seconds, and a head needs none

        torch.set_num_threads(threads)
        bert = load_bert(find_weights(self.bert, self.bert_sha256))

        def run(batch: TitleBatch) -> list[NDArray[np.float16]]:
            with torch.inference_mode():
                pieces, mask = _tensor(batch.pieces), _tensor(batch.mask)
                out = bert(input_ids=pieces, attention_mask=mask, output_hidden_states=True)
                states = out.hidden_states[-1 - self.layers].numpy()
            return [each[real > 0].astype(np.float16) for each, real in zip(states, batch.mask, strict=True)]

        return run

    def check(self, batch: TitleBatch, result: object) -> None:
        """Raises ResultRefused."""
        check_states(result, (batch.mask > 0).sum(axis=1).tolist(), self.width)


@dataclass(frozen=True, eq=False)
class ModuleTask:
    """A module with its weights, such as the part of a news encoder that trains."""

    module: nn.Module

    @property
    def key(self) -> str:
        """By content."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.module!r}".encode())
        for name, each in self.module.named_parameters():
            digest.update(f"{name} {each.dtype} {each.requires_grad}".encode())
            digest.update(each.detach().numpy().tobytes())
        return digest.hexdigest()

    def portable(self) -> Self:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False)
class ModuleVectors(ModuleTask):
    """Vectors [b, D] of batches of the module's inputs. dimensions: D."""

    dimensions: int

    def open(self, threads: int) -> Callable[[ModuleInputs], NDArray[np.float32]]:
        """Its forward pass."""
        torch.set_num_threads(threads)

        def run(inputs: ModuleInputs) -> NDArray[np.float32]:
            with torch.inference_mode():
                vectors: NDArray[np.float32] = self.module(*map(_tensor, inputs)).numpy()
            return vectors

        return run

    def check(self, batch: ModuleInputs, result: object) -> None:
        """Raises ResultRefused."""
        check_array("vectors", result, np.float32, (len(batch[0]), self.dimensions))


class ModuleGradients(ModuleTask):
    """Gradients of the parameters that train, from those of a batch's vectors (Efficient-FedRec, eq. 6)."""

    def open(self, threads: int) -> Callable[[SlopedBatch], dict[str, NDArray[np.floating[Any]]]]:
        """(d e / d w)^T G of a batch for every parameter w that trains, by torch name."""
        torch.set_num_threads(threads)
        parameters = {name: each for name, each in self.module.named_parameters() if each.requires_grad}

        def run(batch: SlopedBatch) -> dict[str, NDArray[np.floating[Any]]]:
            inputs, slopes = batch
            vectors = self.module(*map(_tensor, inputs))
            incoming = _tensor(slopes).to(vectors.dtype)
            found = torch.autograd.grad(vectors, list(parameters.values()), incoming, materialize_grads=True)
            return {name: each.numpy() for name, each in zip(parameters, found, strict=True)}

        return run

    def check(self, batch: SlopedBatch, result: object) -> None:
        """Raises ResultRefused."""
        parameters = {name: each for name, each in self.module.named_parameters() if each.requires_grad}
        if not isinstance(result, dict) or result.keys() != parameters.keys():
            raise ResultRefused("gradients: those of the parameters that train were expected")
        for name, each in parameters.items():
            check_array(f"gradient of {name}", result[name], each.detach().numpy().dtype, each.shape)


def _tensor(values: NDArray[Any] | Tensor) -> Tensor:
    """A copy, since what a cluster brings can't be written."""
    return values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
