"""The trainable part of a PLM encoder. Oracle: the whole encoder on the same titles."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from transformers import BertConfig, BertModel

from models.news.plm import PlmNewsEncoder, UpperEncoder, stack


@pytest.fixture(scope="module")
def encoder() -> PlmNewsEncoder:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32)
    config._attn_implementation = "eager"
    made = PlmNewsEncoder(BertModel(config, add_pooling_layer=False).eval(), 8)
    torch.nn.init.normal_(made.pooling.query.weight)
    return made.double()


PIECES = torch.randint(1, 50, (4, 7), generator=torch.Generator().manual_seed(1))
MASK = (torch.arange(7) < torch.tensor([[7], [2], [5], [1]])).long()


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_upper_encoder_computes_the_whole_encoders_vectors_from_lower_states(
    encoder: PlmNewsEncoder, layers: int
) -> None:
    out = encoder.bert(input_ids=PIECES, attention_mask=MASK, output_hidden_states=True)
    upper = UpperEncoder.of(encoder, layers)
    wanted = encoder(PIECES, MASK)
    assert_close(upper(out.hidden_states[-1 - layers], MASK), wanted, atol=1e-12, rtol=0)
    nonsense = out.hidden_states[-1 - layers] + 100.0 * (1 - MASK[..., None])
    assert_close(upper(nonsense, MASK), wanted, atol=1e-12, rtol=0, msg="padding is read")


def test_upper_encoder_trains_exactly_its_layers(encoder: PlmNewsEncoder) -> None:
    names = {name.split(".")[0] for name, _ in UpperEncoder.of(encoder, 0).named_parameters()}
    assert names == {"pooling", "head"}
    layers = {name.split(".")[1] for name, _ in UpperEncoder.of(encoder, 2).named_parameters() if "layers" in name}
    assert layers == {"0", "1"}
    assert next(UpperEncoder.of(encoder, 1).layers.parameters()) is next(
        encoder.get_submodule("bert.encoder.layer.2").parameters()
    )


def test_too_many_layers_are_refused(encoder: PlmNewsEncoder) -> None:
    with pytest.raises(ValueError, match="between 0 and 3, got 4"):
        UpperEncoder.of(encoder, 4)
    with pytest.raises(ValueError, match=r"encoder\.layer"):
        stack(torch.nn.Linear(2, 2), 1)
