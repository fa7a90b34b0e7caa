"""Packed messages. Oracle: the message that was packed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.federation.secagg.messages import box_for, commitment_of, pack_revealed, pack_shared, revealed_rows
from protocol.secagg import BOX_BYTES, Box, RevealedShare, RevealedShares, SharedKeys
from protocol.shamir import SHARE_BYTES

numbers = st.lists(st.integers(1, 10_000), min_size=1, max_size=12, unique=True).map(sorted)


@settings(max_examples=60, deadline=None)
@given(numbers, st.binary(min_size=32, max_size=32), st.data())
def test_packed_box_is_returned_only_for_its_members_index(
    members: list[int], commitment: bytes, data: st.DataObject
) -> None:
    content = [data.draw(st.binary(min_size=BOX_BYTES, max_size=BOX_BYTES)) for _ in members]
    boxes = tuple(Box(member=member, box=box) for member, box in zip(members, content, strict=True))
    packed = pack_shared(SharedKeys(seed_commitment=commitment, boxes=boxes))
    assert commitment_of(packed) == commitment
    for place, box in enumerate(boxes):
        assert box_for(packed, box.member, place) == box.box
        for wrong in (place - 1, place + 1, len(boxes)):
            with pytest.raises(ValueError, match=f"no box for member {box.member}"):
                box_for(packed, box.member, wrong)


@settings(max_examples=60, deadline=None)
@given(numbers, st.data())
def test_packed_shares_are_restored_with_the_members_they_belong_to(members: list[int], data: st.DataObject) -> None:
    share = st.binary(min_size=SHARE_BYTES, max_size=SHARE_BYTES)
    shares = {member: data.draw(share) for member in members}
    gone = set(data.draw(st.lists(st.sampled_from(members))))
    revealed = RevealedShares(
        seeds=tuple(RevealedShare(member=one, share=shares[one]) for one in members if one not in gone),
        keys=tuple(RevealedShare(member=one, share=shares[one]) for one in members if one in gone),
    )
    rows = list(revealed_rows(pack_revealed(revealed)))
    assert {member: value for _, member, value in rows} == shares
    assert {member for of_key, member, _ in rows if of_key} == gone
    assert len(rows) == len(members)
