"""The papers' user models. Component builders take numbers; presets take nothing and start at the cosine."""

from __future__ import annotations

from typing import Literal

from models.builders.rankers import nrms, self_attention
from models.layers.attention import AdditiveAttention
from models.layers.gru import MaskedGru
from models.shapes import HEAD_DIM, HEADS, NEWS_DIM
from models.user.fednewsrec import FedNewsRecUser
from models.user.nrms_naml_lstur import LsturConUser, LsturIniUser, LsturUser, NamlUser, NrmsUser

ATTENTION_DIM = 200  # A of every AddAttn in these papers
PAPER_HEADS = 20
PAPER_HEAD_DIM = 20

LsturForm = Literal["ini", "con"]


def nrms_400() -> NrmsUser:
    """Efficient-FedRec's user model: 400-d, 20 x 20 heads with biases, 561,601 parameters."""
    model = nrms(heads=PAPER_HEADS, head_dim=PAPER_HEAD_DIM, attention_dim=ATTENTION_DIM)
    model.cosine_start()
    return model


def naml(*, dim: int, attention_dim: int) -> NamlUser:
    """NAML's user model on news vectors of size dim."""
    return NamlUser(dim, AdditiveAttention(dim, attention_dim))


def naml_user() -> NamlUser:
    """NAML at 256-d, hidden 200: 51,601 parameters."""
    model = naml(dim=NEWS_DIM, attention_dim=ATTENTION_DIM)
    model.cosine_start()
    return model


def lstur(form: LsturForm, *, dim: int) -> LsturUser:
    """LSTUR with a GRU of `dim` on news vectors of size dim. Raises ValueError for another form than ini and con."""
    forms: dict[str, type[LsturUser]] = {"ini": LsturIniUser, "con": LsturConUser}
    if form not in forms:
        raise ValueError(f"form must be 'ini' or 'con', got {form!r}")
    return forms[form](dim, MaskedGru(dim, dim))


def lstur_user(form: LsturForm) -> LsturUser:
    """LSTUR at 256-d. `ini`: 394,240 parameters, `con`: 525,312; 256 of them private to the reader."""
    model = lstur(form, dim=NEWS_DIM)
    model.cosine_start()
    return model


def lstur_ini() -> LsturUser:
    """LSTUR-ini at 256-d, as releases carry it."""
    return lstur_user("ini")


def fednewsrec(*, heads: int, head_dim: int, attention_dim: int) -> FedNewsRecUser:
    """FedNewsRec's user model on news vectors of size heads * head_dim."""
    dim = heads * head_dim
    return FedNewsRecUser(
        self_attention(dim=dim, heads=heads, head_dim=head_dim, bias=False),
        AdditiveAttention(dim, attention_dim),
        MaskedGru(dim, dim),
        AdditiveAttention(dim, attention_dim),
    )


def fednewsrec_user() -> FedNewsRecUser:
    """FedNewsRec at the paper's 400-d, 20 x 20 heads: 1,602,002 parameters."""
    model = fednewsrec(heads=PAPER_HEADS, head_dim=PAPER_HEAD_DIM, attention_dim=ATTENTION_DIM)
    model.cosine_start()
    return model


def fednewsrec_user_256() -> FedNewsRecUser:
    """FedNewsRec for news vectors of 256, 16 x 16 heads ("FedRec" in Uni-FedRec): 693,794 parameters."""
    model = fednewsrec(heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM)
    model.cosine_start()
    return model
