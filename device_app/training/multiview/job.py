"""The job that a view's process receives, and its single answer."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from safetensors.numpy import load, save

from protocol.ids import Message

View = Literal["reading", "searches"]
VIEWS: tuple[View, ...] = ("reading", "searches")
LENGTH_BYTES, PIECE_BYTES = 8, 1 << 20


class ViewTerms(Message):
    """A round's data `views`: how each view protects its gradient and steps its own tower.

    views take part, each once; repeating one has no effect. clip is C and sigma the noise multiplier of
    `privacy.local_aggregate.ViewProtection`. tower_rate is the step size of a view's own user tower on its clear
    gradient, which never leaves the view; it is unused if the user tower is shared. at_once is |B_v|: this many of the
    views are drawn for each round (all if it is missing), independent of a device's data. Each drawn view has its own
    noise, and is charged.
    """

    views: tuple[View, ...] = Field(default=VIEWS, min_length=1, max_length=16)
    clip: float = Field(default=0.5, gt=0, le=1e3)
    sigma: float = Field(default=1.0, gt=0, le=1e6)
    tower_rate: float = Field(default=0.2, ge=0, le=100)
    at_once: int | None = Field(default=None, ge=1, le=16)


@dataclass(frozen=True)
class ViewJob:
    """All that a view's process receives: public values, and the path of its own store.

    Args:
        view: the view's name.
        store: its own file.
        encoder: the encoder of the models' input vectors.
        model: name in the release; its tower is stored under this name.
        graph: the gradient graph of one view.
        parameters: the shared parameters of the release.
        items: ids and vectors [n, D] of the item set, the same for every view, from which negatives are drawn.
        terms: the round's terms.
        negatives: K.
        samples_limit: the maximum number of samples.
        seed: seed of the generator that draws samples.
    """

    view: View
    store: Path
    encoder: str
    model: str
    graph: bytes
    parameters: Mapping[str, NDArray[np.float32]]
    items: tuple[tuple[str, ...], NDArray[np.float32]]
    terms: ViewTerms
    negatives: int
    samples_limit: int
    seed: int


class ViewProcesses(Protocol):
    """Where views compute."""

    def why_not(self) -> str | None:
        """Return why views can't be kept apart here, in a sentence; None if they can."""

    def gradient(self, job: ViewJob) -> Mapping[str, NDArray[np.float64]] | None:
        """Return the view's clipped, noisy gradient of the shared parameters.

        It is named `g.<parameter>`; each view adds its own noise. None if the view has nothing to learn from. Raises
        ViewFailed.
        """


class ViewFailed(RuntimeError):
    """A view's process ended without an answer. The message contains no data of the view."""


def to_bytes(job: ViewJob) -> bytes:
    """Return a job in the form that its process reads."""
    ids, vectors = job.items
    tensors = save({"items": vectors, **{f"p.{name}": value for name, value in job.parameters.items()}})
    head = json.dumps(
        {
            "view": job.view, "store": str(job.store), "encoder": job.encoder, "model": job.model, "ids": ids,
            "terms": job.terms.model_dump(), "negatives": job.negatives, "samples_limit": job.samples_limit,
            "seed": job.seed, "graph_bytes": len(job.graph),
        }
    ).encode()  # fmt: skip
    return len(head).to_bytes(8, "little") + head + job.graph + tensors


def from_bytes(data: bytes) -> ViewJob:
    """Return what `to_bytes` wrote."""
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    graph_ends = 8 + size + head["graph_bytes"]
    tensors = load(data[graph_ends:])
    return ViewJob(
        view=head["view"],
        store=Path(head["store"]),
        encoder=head["encoder"],
        model=head["model"],
        graph=data[8 + size : graph_ends],
        parameters={name.removeprefix("p."): value for name, value in tensors.items() if name.startswith("p.")},
        items=(tuple(head["ids"]), tensors["items"]),
        terms=ViewTerms.model_validate(head["terms"]),
        negatives=head["negatives"],
        samples_limit=head["samples_limit"],
        seed=head["seed"],
    )


def write_frame(pipe: int, content: bytes) -> None:
    """Write the content after its length. Raises OSError, also if the reading end is closed."""
    left = memoryview(len(content).to_bytes(LENGTH_BYTES, "little") + content)
    while left:
        left = left[os.write(pipe, left) :]


def read_frame(pipe: int) -> bytes:
    """Read what `write_frame` wrote. Raises EOFError if the input ends early."""
    return _exactly(pipe, int.from_bytes(_exactly(pipe, LENGTH_BYTES), "little"))


def _exactly(pipe: int, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        piece = os.read(pipe, min(PIECE_BYTES, count - len(found)))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)
