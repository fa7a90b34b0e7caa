"""Both devices agree which links lead out of the reader's machine and network. Oracle for hosts: Node's URL."""

from __future__ import annotations

from random import Random

import pytest

from protocol.links import leads_out
from tests.conformance.node_end import ask_node
from tests.doubles.local_links import LOCAL_LINKS, OUTSIDE_LINKS

DRAWN = 30_000
NUMBERS = (
    "0", "1", "00", "7f", "10", "127", "0127", "0177", "0x7f", "0X7F", "0x", "08", "255", "256", "192", "168", "0300",
    "65535", "16777215", "16777216", "2130706433", "4294967295", "4294967296", "１２７", "٣", "%31", "0x100000000",
)  # fmt: skip
PARTS = (
    *NUMBERS,
    "a",
    "local",
    "localhost",
    "Local",
    "home",
    "arpa",
    "internal",
    "example",
    "ſ",
    "㎏",
    "",
    "-",
    "_",
    "ü",
)
DOTS = (".", ".", ".", ".", "。", "｡", "．", "%2e", "..")
LEFT_OUT = ("", "", "", "", "", "\u034f", "\ufe0f", "%C2%AD", "%E2%80%8B")
USERS = ("", "", "", "a@", "paper.example@", "127.0.0.1:80@", "a@b@", "%40@", "[@")
PORTS = ("", "", ":", ":80", ":8401", ":65536", ":8x")
GROUPS = (
    "",
    "0",
    "1",
    "7f00",
    "ffff",
    "2001",
    "2002",
    "2606",
    "db8",
    "1ff",
    "200",
    "3fff",
    "fe80",
    "64",
    "ff9b",
    "1::",
)


def random_link(dice: Random) -> str:
    if dice.random() < 0.2:
        groups = ":".join(dice.choices(GROUPS, k=dice.choice((3, 5, 8))))
        host = f"[{groups}{dice.choice(('', '::', ':127.0.0.1'))}]{dice.choice(('', '', '', 'x'))}"
    else:
        parts = dice.choices(dice.choice((NUMBERS, PARTS)), k=dice.choice((1, 2, 3, 4, 4, 5)))
        host = "".join(part + dice.choice(LEFT_OUT) + dice.choice(DOTS) for part in parts)
        host = host[: -1 if dice.random() < 0.8 else None]
    scheme, rest = dice.choice(("http", "https")), dice.choice(("", "/", "/a@b", "?", "\\"))
    return f"{scheme}://{dice.choice(USERS)}{host}{dice.choice(PORTS)}{rest}"


@pytest.mark.parametrize(("links", "lead_out"), [(LOCAL_LINKS, False), (OUTSIDE_LINKS, True)])
def test_both_devices_recognise_every_notation_of_a_local_address(links: tuple[str, ...], lead_out: bool) -> None:
    (theirs,) = ask_node([("links_lead_out", links)])
    for link, other in zip(links, theirs, strict=True):
        assert (leads_out(link), other) == (lead_out, lead_out), link


def test_both_devices_accept_the_same_random_links() -> None:
    dice = Random(41)
    links = [random_link(dice) for _ in range(DRAWN)]
    (theirs,) = ask_node([("links_lead_out", links)])
    differ = [(link, other) for link, other in zip(links, theirs, strict=True) if leads_out(link) != other]
    assert differ == []
    assert 0.05 < sum(theirs) / DRAWN < 0.95
