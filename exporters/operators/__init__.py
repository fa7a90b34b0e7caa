"""How each of torch's plain operators translates to ONNX: one dict.

An operator that is missing is an error.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch

from exporters.operators import arithmetic, layout, recurrence
from exporters.translate import Rule
from models.layers.gru import back_step_by_step, last_state, step_by_step
from models.layers.real_rows import real_places

aten: Any = torch.ops.aten


def _each(rule: Rule, *targets: Any) -> dict[Callable[..., Any], Rule]:
    return dict.fromkeys(targets, rule)


RULES: dict[Any, Rule] = {
    **_each(arithmetic.same, aten.alias.default, aten.clone.default, aten.detach.default, aten.expand.default),
    aten.lift_fresh_copy.default: arithmetic.same,
    **_each(arithmetic.arithmetic("Add"), aten.add.Tensor, aten.add.Scalar),
    **_each(arithmetic.arithmetic("Sub"), aten.sub.Tensor, aten.sub.Scalar),
    **_each(arithmetic.arithmetic("Mul"), aten.mul.Tensor, aten.mul.Scalar),
    **_each(arithmetic.arithmetic("Div"), aten.div.Tensor, aten.div.Scalar),
    **_each(arithmetic.arithmetic("Max"), aten.maximum.default),
    **_each(arithmetic.arithmetic("Min"), aten.minimum.default),
    **_each(arithmetic.reversed_subtraction, aten.rsub.Tensor, aten.rsub.Scalar),
    **_each(arithmetic.arithmetic("Or"), aten.bitwise_or.Tensor, aten.logical_or.default),
    **_each(arithmetic.arithmetic("And"), aten.bitwise_and.Tensor, aten.logical_and.default),
    **_each(arithmetic.unary("Not"), aten.bitwise_not.default, aten.logical_not.default),
    **_each(arithmetic.comparison("Equal"), aten.eq.Tensor, aten.eq.Scalar),
    **_each(arithmetic.comparison("Equal", negated=True), aten.ne.Tensor, aten.ne.Scalar),
    **_each(arithmetic.comparison("Less"), aten.lt.Tensor, aten.lt.Scalar),
    **_each(arithmetic.comparison("LessOrEqual"), aten.le.Tensor, aten.le.Scalar),
    **_each(arithmetic.comparison("Greater"), aten.gt.Tensor, aten.gt.Scalar),
    **_each(arithmetic.comparison("GreaterOrEqual"), aten.ge.Tensor, aten.ge.Scalar),
    **{
        getattr(aten, name).default: arithmetic.unary(op)
        for name, op in {
            "neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu",
            "sqrt": "Sqrt", "abs": "Abs", "reciprocal": "Reciprocal", "erf": "Erf", "sign": "Sign", "sgn": "Sign",
        }.items()
    },
    aten.rsqrt.default: arithmetic.composed("Sqrt", "Reciprocal"),
    aten.pow.Tensor_Scalar: arithmetic.power,
    **_each(arithmetic.clamp, aten.clamp.default, aten.clamp_min.default, aten.hardtanh.default),
    aten.gelu.default: arithmetic.gelu,
    aten.where.self: arithmetic.where,
    aten._to_copy.default: arithmetic.converted,
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
    **_each(arithmetic.matrix_product, aten.mm.default, aten.addmm.default),
    aten.bmm.default: arithmetic.batched_product,
    **_each(arithmetic.reduction("ReduceSum"), aten.sum.dim_IntList, aten.sum.default),
    **_each(arithmetic.reduction("ReduceMean"), aten.mean.dim, aten.mean.default),
    aten.amax.default: arithmetic.reduction("ReduceMax"),
    aten.amin.default: arithmetic.reduction("ReduceMin"),
    aten.linalg_vector_norm.default: arithmetic.length,
    aten._softmax.default: arithmetic.softmax("Softmax"),
    aten._log_softmax.default: arithmetic.softmax("LogSoftmax"),
    aten.argmax.default: arithmetic.argmax,
    aten.cumsum.default: arithmetic.cumulated,
    aten.native_layer_norm.default: arithmetic.layer_norm,
    last_state._opoverload: recurrence.gru,
    step_by_step._opoverload: recurrence.step_by_step,
    back_step_by_step._opoverload: recurrence.back_step_by_step,
    real_places._opoverload: layout.real_places,
    **_each(layout.rows, aten.embedding.default, aten.index_select.default),
    aten.embedding_dense_backward.default: layout.rows_gradient,
    aten.index.Tensor: layout.index,
    **_each(layout.index_put, aten.index_put.default, aten._unsafe_index_put.default),
    aten.gather.default: layout.gather,
    aten.scatter_add.default: layout.scatter(adds=True),
    **_each(layout.scatter(adds=False), aten.scatter.src, aten.scatter.value),
}  # fmt: skip
