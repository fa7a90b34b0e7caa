"""A device's part in a secure sum, without I/O: it yields sealed messages and is sent the server's answers.

keys -> shares -> complaints -> masked -> (agree) -> unmask        Bonawitz et al. 2017, figure 4
"""

from __future__ import annotations

from collections.abc import Collection, Generator

from device_app.errors import SumAborted
from device_app.privacy.sealed import digest
from device_app.privacy.secagg.contribution import Contribution, Spender
from device_app.privacy.secagg.messages import (
    Reply,
    Step,
    agree_step,
    complaints_step,
    keys_step,
    masked_step,
    shares_step,
    unmask_step,
)
from device_app.privacy.secagg.roster import RosterRules
from device_app.privacy.secagg.state import SumState
from device_app.privacy.secagg.transitions import SumTransitions
from device_app.wire.secagg import (
    Agreements,
    Roster,
    Sharers,
    Shares,
    Survivors,
)


def take_part(
    state: SumState,
    contribution: Contribution,
    ledger: Spender,
    *,
    payload: bytes | None = None,
    directory: Collection[bytes] | None = None,
    smallest: int = 2,
    threads: int = 1,
) -> Generator[Step, Reply, SumState]:
    """Go through the stages from wherever `state` stands; each answer of the server is sent in, None for the last.

    Args:
        state: from `begin_sum`, or as it was kept when the device was killed.
        contribution: read once, at stage masked; a device that was killed later doesn't need the same one again.
        ledger: charged before the masked vector is sealed.
        payload: the masked vector as it was kept, when `state` stands at stage masked.
        directory: verify keys of all devices that may be members, where there is such a list.
        smallest: the fewest members, this device among them, that its masks may be shared with and its vector be opened
            with; what the reader asks for.
        threads: for making masks; can't change what is sent.

    Raises SumAborted if the server's answers are not those of an honest one, or the masked vector was not kept;
    BudgetSpent.

    Formal guarantees: with an honest-but-curious server and fewer than t colluding members the masked vector, and all
    messages together, tell nothing of this device's vector beyond the sum over the survivors, at least t of them
    (Bonawitz et al. 2017, theorem 6.3, under the usual assumptions on X25519, HKDF, ChaCha20 and the AEAD). In mode
    'active' the same holds for a server that deviates, with fewer than n/3 colluding members (theorem 6.5), provided
    that `directory` says who is a device; without a directory a server can invent members, and signatures only keep
    honest devices to one view: then nothing but this device's own share of noise hides its vector
    (`prices.SumPrices.alone`). In the sparse form as many members hold shares, and as many of them give a secret, as
    `wire.neighbourhood` has it for the cohort that the server names. Of one member, either the share of the seed or
    that of the key is revealed, never both, and once. The sum itself is exact: what it tells is bounded only by noise
    inside it (`discrete_noise`). That this device takes part isn't hidden. A complaint comes before anything is paid or
    masked and names members only: it tells the server which boxes failed, and nothing of a key or a share. Who was
    complained of is in no sum with this device, whatever the server says.
    """
    device = SumTransitions(state.terms, contribution, ledger, RosterRules(state.terms, directory, smallest), threads)
    if state.stage == "masked" and (payload is None or digest(payload) != state.masked_sha256):
        raise device.abort("the masked vector was not kept, and a second one must not be made")
    if state.stage == "keys":
        reply = yield keys_step(state)
        state = device.share(state, device.expect(reply, Roster))
    if state.stage == "shares":
        reply = yield shares_step(state)
        state = device.open_boxes(state, device.expect(reply, Shares))
    if state.stage == "complaints":
        reply = yield complaints_step(state)
        state, payload = device.mask(state, device.expect(reply, Sharers))
    if state.stage == "masked":
        reply = yield masked_step(state, payload)
        state = device.hear_survivors(state, device.expect(reply, Survivors))
    if state.stage == "agree":
        reply = yield agree_step(state)
        state = device.hear_agreements(state, device.expect(reply, Agreements))
    reply = yield unmask_step(state)
    if reply is not None:
        raise SumAborted(state.terms.round, "after unmasking there is nothing more to answer")
    return state
