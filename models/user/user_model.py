"""What the papers' user models share: a reader is one vector, and training may start at the cosine (ALGORITHMS 7)."""

from __future__ import annotations

from abc import abstractmethod

from models.one_vector import OneVectorModel


class UserModel(OneVectorModel):
    """A ranker of one user vector, which every one of them can start as the cosine of the frozen news vectors."""

    @abstractmethod
    def cosine_start(self) -> None:
        """Set the parameters so that scores are those of the frozen news vectors' cosines, and can be learnt from."""
