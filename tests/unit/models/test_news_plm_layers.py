"""PLM-NR with layers that train: the paper's sizes, the frozen parts, and transformers' BertModel inside."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from transformers import BertConfig, BertModel

from models.builders.news import plm_nr, plm_nr_256, plm_nr_400


def tiny_bert(layers: int = 3) -> BertModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40, hidden_size=8, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=16
    )
    return BertModel(config, add_pooling_layer=False)


def test_plm_nr_with_bert_base_has_110_085_521_parameters() -> None:
    with torch.device("meta"):
        bert = BertModel(BertConfig())
    encoder = plm_nr_400(bert)
    assert sum(each.numel() for each in encoder.parameters()) == 110_085_521
    assert encoder.pooling.hidden.out_features == 384  # half of the encoder's width
    trained = {name.split(".")[3] for name, each in encoder.bert.named_parameters(prefix="bert") if each.requires_grad}
    assert trained == {"6", "7", "8", "9", "10", "11"}


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_only_the_top_layers_pooling_and_head_get_gradients(layers: int) -> None:
    encoder = plm_nr(tiny_bert(), head_dim=4, top_layers=layers)
    nn.init.normal_(encoder.pooling.query.weight)
    encoder.train()
    encoder(torch.tensor([[3, 4, 5]]), torch.ones(1, 3, dtype=torch.int64)).square().sum().backward()
    for name, each in encoder.named_parameters():
        inside = name.startswith("bert.")
        expected = not inside or any(name.startswith(f"bert.encoder.layer.{at}.") for at in range(3 - layers, 3))
        assert (each.grad is not None) == expected, name


def test_word_piece_padding_changes_no_vector_and_training_has_no_dropout() -> None:
    encoder = plm_nr(tiny_bert(), head_dim=4, top_layers=1).train()
    pieces, mask = torch.tensor([[3, 4, 5]]), torch.ones(1, 3, dtype=torch.int64)
    padded = encoder(torch.tensor([[3, 4, 5, 9, 0]]), torch.tensor([[1, 1, 1, 0, 0]]))
    assert_close(padded, encoder(pieces, mask))
    assert encoder(pieces, mask).equal(encoder(pieces, mask))


def test_preset_256_fits_an_encoder_of_width_384() -> None:
    with torch.device("meta"):
        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        encoder = plm_nr_256(BertModel(config, add_pooling_layer=False))
    assert encoder.head.out_features == 256
    assert encoder.pooling.hidden.out_features == 192


def test_error_names_too_many_layers_and_a_model_without_layers() -> None:
    with pytest.raises(ValueError, match="layers must be between 0 and 3, got 4"):
        plm_nr(tiny_bert(), head_dim=4, top_layers=4)
    other = nn.Linear(2, 2)
    vars(other)["config"] = BertConfig(hidden_size=8)
    with pytest.raises(ValueError, match=r"bert must have its layers in encoder.layer, got Linear"):
        plm_nr(other, head_dim=4, top_layers=1)
