"""How each of torch's plain operators translates to ONNX: one dict.

An operator that is missing is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from exporters.operators import elementwise, layout, recurrence, rows, sums
from exporters.translate import Rule
from models.layers.gru import back_step_by_step, last_state, step_by_step
from models.layers.real_rows import real_places

aten: Any = torch.ops.aten

__all__ = ["RULES"]


def _each(rule: Rule, *targets: Any) -> dict[Callable[..., Any], Rule]:
    return dict.fromkeys(targets, rule)


RULES: dict[Any, Rule] = {
    **_each(elementwise.same, aten.alias.default, aten.clone.default, aten.detach.default, aten.expand.default),
    aten.lift_fresh_copy.default: elementwise.same,
    **_each(elementwise.arithmetic("Add"), aten.add.Tensor, aten.add.Scalar),
    **_each(elementwise.arithmetic("Sub"), aten.sub.Tensor, aten.sub.Scalar),
    **_each(elementwise.arithmetic("Mul"), aten.mul.Tensor, aten.mul.Scalar),
    **_each(elementwise.arithmetic("Div"), aten.div.Tensor, aten.div.Scalar),
    **_each(elementwise.arithmetic("Max"), aten.maximum.default),
    **_each(elementwise.arithmetic("Min"), aten.minimum.default),
    **_each(elementwise.reversed_subtraction, aten.rsub.Tensor, aten.rsub.Scalar),
    **_each(elementwise.arithmetic("Or"), aten.bitwise_or.Tensor, aten.logical_or.default),
    **_each(elementwise.arithmetic("And"), aten.bitwise_and.Tensor, aten.logical_and.default),
    **_each(elementwise.unary("Not"), aten.bitwise_not.default, aten.logical_not.default),
    **_each(elementwise.comparison("Equal"), aten.eq.Tensor, aten.eq.Scalar),
    **_each(elementwise.comparison("Equal", negated=True), aten.ne.Tensor, aten.ne.Scalar),
    **_each(elementwise.comparison("Less"), aten.lt.Tensor, aten.lt.Scalar),
    **_each(elementwise.comparison("LessOrEqual"), aten.le.Tensor, aten.le.Scalar),
    **_each(elementwise.comparison("Greater"), aten.gt.Tensor, aten.gt.Scalar),
    **_each(elementwise.comparison("GreaterOrEqual"), aten.ge.Tensor, aten.ge.Scalar),
    **{
        getattr(aten, name).default: elementwise.unary(op)
        for name, op in {
            "neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu",
            "sqrt": "Sqrt", "abs": "Abs", "reciprocal": "Reciprocal", "erf": "Erf", "sign": "Sign", "sgn": "Sign",
        }.items()
    },
    aten.rsqrt.default: elementwise.composed("Sqrt", "Reciprocal"),
    aten.pow.Tensor_Scalar: elementwise.power,
    **_each(elementwise.clamp, aten.clamp.default, aten.clamp_min.default, aten.hardtanh.default),
    aten.gelu.default: elementwise.gelu,
    aten.where.self: elementwise.where,
    aten._to_copy.default: elementwise.converted,
    **_each(layout.reshape, aten.view.default, aten._unsafe_view.default, aten.reshape.default),
    **_each(layout.reshape, aten.squeeze.dims, aten.squeeze.dim, aten.squeeze.default),
    aten.unsqueeze.default: layout.unsqueeze,
    aten.permute.default: layout.permute,
    **_each(layout.number_everywhere, aten.full.default, aten.full_like.default, aten.scalar_tensor.default),
    aten.arange.start_step: layout.arange,
    aten.cat.default: layout.concat,
    aten.split_with_sizes.default: layout.split,
    operator.getitem: layout.piece,
    aten.slice.Tensor: layout.slice_,
    aten.slice_scatter.default: layout.slice_scatter,
    aten.select.int: layout.select,
    aten.constant_pad_nd.default: layout.pad,
    aten.flip.default: layout.flip,
    **_each(sums.matrix_product, aten.mm.default, aten.addmm.default),
    aten.bmm.default: sums.batched_product,
    **_each(sums.reduction("ReduceSum"), aten.sum.dim_IntList, aten.sum.default),
    **_each(sums.reduction("ReduceMean"), aten.mean.dim, aten.mean.default),
    aten.amax.default: sums.reduction("ReduceMax"),
    aten.amin.default: sums.reduction("ReduceMin"),
    aten.linalg_vector_norm.default: sums.length,
    aten._softmax.default: sums.softmax("Softmax"),
    aten._log_softmax.default: sums.softmax("LogSoftmax"),
    aten.argmax.default: sums.argmax,
    aten.cumsum.default: sums.cumulated,
    aten.native_layer_norm.default: sums.layer_norm,
    last_state._opoverload: recurrence.gru,
    step_by_step._opoverload: recurrence.step_by_step,
    back_step_by_step._opoverload: recurrence.back_step_by_step,
    real_places._opoverload: rows.real_places,
    **_each(rows.rows, aten.embedding.default, aten.index_select.default),
    aten.embedding_dense_backward.default: rows.rows_gradient,
    aten.index.Tensor: rows.index,
    **_each(rows.index_put, aten.index_put.default, aten._unsafe_index_put.default),
    aten.gather.default: rows.gather,
    aten.scatter_add.default: rows.scatter(adds=True),
    **_each(rows.scatter(adds=False), aten.scatter.src, aten.scatter.value),
}  # fmt: skip
