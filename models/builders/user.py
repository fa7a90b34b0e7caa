"""Builders of the papers' user models.

Component builders take sizes; presets take D and return a model at the cosine start.
"""

from typing import Literal

from models.builders.rankers import nrms_user, self_attention
from models.layers.attention import AdditiveAttention
from models.layers.gru import MaskedGru
from models.shapes import NEWS_DIM, PAPER_DIM, heads_of
from models.user.papers import FedNewsRecUser, LsturConUser, LsturIniUser, LsturUser, NamlUser, NrmsUser

ATTENTION_DIM = 200  # A of every AddAttn in these papers

LsturForm = Literal["ini", "con"]


def nrms_400() -> NrmsUser:
    """Return Efficient-FedRec's user model: 400-d, 20 x 20 heads with biases, 561,601 parameters."""
    return nrms_user(PAPER_DIM)


def naml(*, dim: int, attention_dim: int) -> NamlUser:
    """Return NAML's user model on news vectors of size dim."""
    return NamlUser(dim, AdditiveAttention(dim, attention_dim))


def naml_user(dim: int = NEWS_DIM) -> NamlUser:
    """Return NAML with hidden size 200: 51,601 parameters at 256-d."""
    model = naml(dim=dim, attention_dim=ATTENTION_DIM)
    model.cosine_start()
    return model


def lstur(form: LsturForm, *, dim: int) -> LsturUser:
    """Return LSTUR with a GRU of size `dim` on news vectors of size dim.

    Raises ValueError for any form except ini and con.
    """
    forms: dict[str, type[LsturUser]] = {"ini": LsturIniUser, "con": LsturConUser}
    if form not in forms:
        raise ValueError(f"form must be 'ini' or 'con', got {form!r}")
    return forms[form](dim, MaskedGru(dim, dim))


def lstur_user(form: LsturForm, dim: int = NEWS_DIM) -> LsturUser:
    """Return LSTUR.

    At 256-d `ini` has 394,240 parameters and `con` 525,312; 256 of them are private to the reader.
    """
    model = lstur(form, dim=dim)
    model.cosine_start()
    return model


def lstur_ini(dim: int = NEWS_DIM) -> LsturUser:
    """Return LSTUR-ini, the form that releases carry."""
    return lstur_user("ini", dim)


def fednewsrec(*, heads: int, head_dim: int, attention_dim: int) -> FedNewsRecUser:
    """Return FedNewsRec's user model on news vectors of size heads * head_dim."""
    dim = heads * head_dim
    return FedNewsRecUser(
        self_attention(dim=dim, heads=heads, head_dim=head_dim, bias=False),
        AdditiveAttention(dim, attention_dim),
        MaskedGru(dim, dim),
        AdditiveAttention(dim, attention_dim),
    )


def fednewsrec_user_400() -> FedNewsRecUser:
    """Return FedNewsRec at the paper's 400-d, 20 x 20 heads: 1,602,002 parameters."""
    return fednewsrec_user(PAPER_DIM)


def fednewsrec_user(dim: int = NEWS_DIM) -> FedNewsRecUser:
    """Return FedNewsRec on news vectors of size heads * head_dim ("FedRec" in Uni-FedRec).

    It has 693,794 parameters at 256-d, 16 x 16 heads.
    """
    heads, head_dim = heads_of(dim)
    model = fednewsrec(heads=heads, head_dim=head_dim, attention_dim=ATTENTION_DIM)
    model.cosine_start()
    return model
