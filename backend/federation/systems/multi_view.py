"""FL-MV-DSSM, SEMI-FL-MV-DSSM and FL-DSSM: one strategy with different settings.

SEMI, the system `multi_view`: an item tower learned from several views of each reader, which never see each other's
data.

On a device each view (reading; saved searches and topics) computes its gradient of the item tower in a process of its
own, clips it to C = 0.5 and adds Gaussian noise of 0.5 to every coordinate. These are the paper's figures, by which a
view that takes part in 100 rounds spends epsilon 80.0 at delta 1e-3 towards the other views. User towers stay on their
devices. The mean of the views' gradients goes into an exact secure sum, as in the paper. The sum's clip is above the
norm of the noise (0.5 sqrt(18,528) = 68), so in practice nothing is scaled: scaling by that norm would weight the noise
and not the gradient. No epsilon is claimed towards the server beyond the views' own noise, and devices decline the
round unless their readers allow exact sums.

The noise is 0.5 on a gradient of length at most 0.5, over 18,528 coordinates: a mean over 1,000 devices with both views
still carries noise of 0.011 a coordinate where the gradient has 0.004. So training needs many readers and many rounds.

FL-MV-DSSM, the preset `fl_mv_dssm`: both views, with both user towers shared. The release has a user tower for each
view, and a view's contribution, clipped and noised as one vector, is its gradient of the item tower and of its own user
tower. The item tower's gradient is the mean over views, a user tower's is that of its one view: the noise has length .5
sqrt(18,528 (1/2 + 2)) = 108, below the clip of 128. `fl_mv_dssm_subset` draws one of the views for a round (the paper's
B_v), whatever a device has; this saves no noise.

Both presets step by Adam at 0.001 and a view's gradient is of one batch of 20 (section V-A); Algorithm 1 has no local
steps, so the clients' SGD rate of 0.2 is unused.

FL-DSSM, the preset `fl_dssm`: only the view of reading, in its process as above, and its user tower is shared: both
towers are in the release, and the gradient of both is clipped, noised and summed. Its noise has length .5 sqrt(37,056)
= 96 and is not halved by a second view's, hence the larger clip of the sum.

Fixed point: 12 fraction bits in a ring of 32; n C 2^12 < 2^31 for 1,000 devices at C = 100 and at 128.
"""

from dataclasses import replace

from backend.federation.optimizers import Adam, FedAdam
from backend.federation.strategies.fedavg import MultiView
from backend.federation.systems.composition import EXACT, Form, System, SystemSpec
from backend.federation.systems.release_gate import GATE_ROUND
from protocol.protections import SecureSum

NOISE_OF_VIEWS = SecureSum(clip=100.0, fraction_bits=12)
MULTI_VIEW = System(
    SystemSpec(
        name="multi_view",
        architecture="multi_view",
        model="ranker.multi_view",
        task="multi_view",
        protection=NOISE_OF_VIEWS,
        strategy=MultiView(clip=0.5, sigma=1.0, tower_rate=0.2),
        optimizer=FedAdam(learning_rate=0.001),
        negatives=4,
        samples_limit=32,
        gate=GATE_ROUND,
    ),
    forms={EXACT: Form(NOISE_OF_VIEWS)},
)
FL_DSSM = SystemSpec(
    name="fl_dssm",
    architecture="fl_dssm_news",
    model="ranker.fl_dssm",
    task="multi_view",
    protection=SecureSum(clip=128.0, fraction_bits=12),
    strategy=MultiView(views=("reading",), clip=0.5, sigma=1.0),
    optimizer=Adam(learning_rate=0.001),
    negatives=4,
    samples_limit=20,
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
