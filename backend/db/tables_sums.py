"""What devices have sent to a secure sum under way. Pseudonyms live for one round, and these rows for less."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Integer, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class SumMessageRow(Base):
    """What one device sent at one stage of a secure sum; gone when the sum ends.

    body holds public keys, encrypted shares, a signature or revealed shares, and is empty for a masked vector.
    """

    __tablename__ = "secure_sum_messages"

    sum: Mapped[str] = mapped_column(ForeignKey("secure_sums.name", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(String(20), primary_key=True)
    member: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    pseudonym: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64))
    body: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (UniqueConstraint("sum", "stage", "pseudonym"),)


class SumKeyRow(Base):
    """A public key that a member of a secure sum has advertised; no two members may have one in common."""

    __tablename__ = "secure_sum_keys"

    sum: Mapped[str] = mapped_column(ForeignKey("secure_sums.name", ondelete="CASCADE"), primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
