"""The batch computations of a training step of the news encoder, as executor tasks.

Imports torch. Each task opens with a number of threads and processes the rows of a batch independently, so that a batch
gives the same result on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.embedding.batch_executor import BatchExecutor, LocalExecutor, ResultRefused, check_array, check_states
from backend.embedding.embedder import TitleBatch
from backend.embedding.weights import find_weights

ModuleInputs = tuple[NDArray[np.float32] | Tensor, ...]
"""Inputs of the upper part of a news encoder: states [b, L, S] and their mask [b, L]."""
SlopedBatch = tuple[ModuleInputs, NDArray[np.floating[Any]]]
"""Inputs, and G [b, D], the gradient of the loss for each vector."""


@dataclass(frozen=True)
class FrozenStates:
    """The part of BERT below its top `layers` layers.

    Args:
        bert, bert_sha256: as in the settings; every node has the model at the same path as the backend's machine.
        width: S; None if it isn't known.
    """

    at_once: ClassVar[bool] = False  # torch's number of threads holds for the whole process

    bert: str
    bert_sha256: str | None
    layers: int
    width: int | None = None

    @property
    def key(self) -> str:
        """Return a key that identifies the task by its content."""
        return f"states {self.bert} {self.bert_sha256} below {self.layers}"

    def portable(self) -> FrozenStates:
        """Return self: the weights are located and checked where the task is opened."""
        return self

    def open(self, threads: int) -> Callable[[TitleBatch], list[NDArray[np.float16]]]:
        """Return a function that gives the token states [L_i, S] of each title.

        Raises WeightsRefused.
        """
        from backend.embedding.torch_encoder import load_bert  # slow import, not needed for a head

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
        """Raise ResultRefused for a result of the wrong form."""
        check_states(result, (batch.mask > 0).sum(axis=1).tolist(), self.width)


@dataclass(frozen=True, eq=False)
class ModuleTask:
    """A module with its weights, such as the trained part of a news encoder."""

    at_once: ClassVar[bool] = False  # as above

    module: nn.Module

    @property
    def key(self) -> str:
        """Return a key that identifies the task by its content."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.module!r}".encode())
        for name, each in self.module.named_parameters():
            digest.update(f"{name} {each.dtype} {each.requires_grad}".encode())
            digest.update(each.detach().numpy().tobytes())
        return digest.hexdigest()

    def portable(self) -> Self:
        """Return self."""
        return self


@dataclass(frozen=True, eq=False)
class ModuleVectors(ModuleTask):
    """Computes vectors [b, D] from batches of the module's inputs. dimensions: D."""

    dimensions: int

    def open(self, threads: int) -> Callable[[ModuleInputs], NDArray[np.float32]]:
        """Return the module's forward pass."""
        torch.set_num_threads(threads)

        def run(inputs: ModuleInputs) -> NDArray[np.float32]:
            with torch.inference_mode():
                vectors: NDArray[np.float32] = self.module(*map(_tensor, inputs)).numpy()
            return vectors

        return run

    def check(self, batch: ModuleInputs, result: object) -> None:
        """Raise ResultRefused for a result of the wrong form."""
        check_array("vectors", result, np.float32, (len(batch[0]), self.dimensions))


class ModuleGradients(ModuleTask):
    """Computes gradients of trained parameters from those of vectors (Efficient-FedRec, eq. 6)."""

    def open(self, threads: int) -> Callable[[SlopedBatch], dict[str, NDArray[np.floating[Any]]]]:
        """Return a function that gives (d e / d w)^T G of a batch for every trained parameter w."""
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
        """Raise ResultRefused for a result of the wrong form."""
        parameters = {name: each for name, each in self.module.named_parameters() if each.requires_grad}
        if not isinstance(result, dict) or result.keys() != parameters.keys():
            raise ResultRefused("gradients: expected exactly those of the trained parameters")
        for name, each in parameters.items():
            check_array(f"gradient of {name}", result[name], each.detach().numpy().dtype, each.shape)


Batch = tuple[NDArray[np.int64], ModuleInputs]
"""Row indices [b] and the encoder's inputs for these rows."""


def vector_jacobian(
    encoder: nn.Module,
    batches: Iterable[Batch],
    vector_gradients: NDArray[np.floating[Any]],
    executor: BatchExecutor | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Return g = sum_i (d e_i / d w)^T G_i for every trained parameter w, by torch name.

    The encoder runs on one batch of articles at a time, and their rows of G are the incoming gradient of the backward
    pass. The result does not depend on how rows are split into batches if the encoder processes rows independently.

    Args:
        encoder: maps a batch's inputs to vectors [b, D].
        batches: batches that together contain each row of `vector_gradients` once.
        vector_gradients: G [n, D], the gradient of the loss for each vector.
        executor: computes the batches; their gradients are summed in float64 and in order. None: this process
            computes them with torch's threads.

    Raises ValueError unless every row occurs once, and ClusterUnavailable.
    """
    named: list[NDArray[np.int64]] = []
    totals = {name: np.zeros(each.shape) for name, each in encoder.named_parameters() if each.requires_grad}

    def sloped() -> Iterator[SlopedBatch]:
        for rows, inputs in batches:
            named.append(rows)
            yield inputs, np.ascontiguousarray(vector_gradients[rows])

    for found in (executor or LocalExecutor(torch.get_num_threads())).map(ModuleGradients(encoder), sloped()):
        for name, each in found.items():
            totals[name] += each
    if sorted(np.concatenate(named).tolist() if named else []) != list(range(len(vector_gradients))):
        raise ValueError(f"batches must name each of {len(vector_gradients)} rows once")
    return totals


def _tensor(values: NDArray[Any] | Tensor) -> Tensor:
    """Return a copy as a tensor, since arrays from a cluster are read-only."""
    return values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
