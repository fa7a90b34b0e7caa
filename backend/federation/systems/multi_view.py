"""FL-MV-DSSM, SEMI-FL-MV-DSSM and FL-DSSM: one strategy and one task, by their settings.

SEMI, `multi_view`: an item tower learnt from several views of each reader, which never see each other.

On a device each view (reading; saved searches and topics) computes its gradient of the item tower in a process of its
own, clips it to C = 0.5 and puts Gaussian noise of 0.5 on every coordinate: the paper's figures, by which a view that
takes part in 100 rounds spends epsilon 80.0 at delta 1e-3 towards the other views. User towers stay on their devices.
The mean of the views' gradients goes into an exact secure sum, as in the paper. Its clip is above the norm of the
noise (0.5 sqrt(18,528) = 68), so that in practice nothing is scaled: scaling by that norm would weigh the noise and
not the gradient. No epsilon is claimed towards the server beyond the views' own noise, and devices decline the round
unless their readers allow exact sums.

Noise of 0.5 on a gradient of length 0.5 at most, over 18,528 coordinates: a mean over 1,000 devices with both views
still carries 0.011 a coordinate where the gradient has 0.004. This learns with many readers and many rounds, or not.

FL-MV-DSSM, `fl_mv_dssm`: both views, and both user towers are shared: the release has one for each view, and what a
view gives, clipped and noisy as one, is its gradient of the item tower and of its own user tower. The item tower's is
the mean over views, a user tower's the one view's: .5 sqrt(18,528 (1/2 + 2)) = 108 of noise, below the clip of 128.
`fl_mv_dssm_subset` draws one of a device's views for a round, the paper's B_v; nothing is saved in noise for it.

FL-DSSM, `fl_dssm`: the view of reading alone, in its process as above, and its user tower is shared: both towers are in
the release, and the gradient of both is clipped, made noisy and summed. Its noise is .5 sqrt(37,056) = 96 long and is
not halved by a second view's, hence the larger clip of the sum.

Fixed point: 12 fraction bits in a ring of 32; n C 2^12 < 2^31 for 1,000 devices at C = 100 and at 128.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import FedAdam
from backend.federation.strategies.multi_view import MultiView
from backend.federation.systems.release_gate import GATE_ROUND
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import SecureSum

MULTI_VIEW = SystemSpec(
    name="multi_view",
    architecture="multi_view",
    model="ranker.multi_view",
    task="multi_view",
    protection=SecureSum(clip=100.0, fraction_bits=12),
    strategy=MultiView(clip=0.5, sigma=1.0, tower_rate=0.2),
    optimizer=FedAdam(learning_rate=0.001),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)
FL_DSSM = SystemSpec(
    name="fl_dssm",
    architecture="fl_dssm_news",
    model="ranker.fl_dssm",
    task="multi_view",
    protection=SecureSum(clip=128.0, fraction_bits=12),
    strategy=MultiView(views=("reading",), clip=0.5, sigma=1.0),
    optimizer=FedAdam(learning_rate=0.001),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)
FL_MV_DSSM = replace(
    FL_DSSM,
    name="fl_mv_dssm",
    architecture="fl_mv_dssm_news",
    model="ranker.fl_mv_dssm",
    strategy=MultiView(clip=0.5, sigma=1.0),
)
FL_MV_DSSM_SUBSET = replace(FL_MV_DSSM, name="fl_mv_dssm_subset", strategy=MultiView(clip=0.5, sigma=1.0, at_once=1))
