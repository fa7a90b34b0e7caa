"""The sum of Python and browser devices at a real server is exact. Oracle: numpy's sum."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backend.federation.secagg.secure_sum import SecureSumServer
from device_app.privacy.secagg.messages import SumState
from protocol.secagg import AdvertisedKeys, Agreement, Complaints, RevealedShares, SharedKeys, SumTerms
from tests.conformance.node_end import ask_node
from tests.doubles.secure_sums import STAGES, SumDevice, answer, chunks, cohort, deliver, plain_sum, terms

pytestmark = pytest.mark.node


class BrowserMember(SumDevice):
    """A member whose messages the browser's end makes; its state is kept as JSON between stages."""

    kept: str = ""
    message: bytes = b""

    def take(self, reported: dict[str, Any]) -> str:
        """Keep the browser end's result in the form that the Python device reads. Returns the stage."""
        self.kept, self.message = reported["state"], bytes.fromhex(reported["message"])
        self.state = SumState.model_validate_json(self.kept)
        assert self.state.model_dump_json() == self.kept
        return str(reported["stage"])

    def send(self, server: SecureSumServer) -> bool:
        """Hand the current message to the server, as `deliver` does."""
        if self.state.stage == "masked":
            return server.add_masked(self.pseudonym, chunks(self.message))
        kinds: dict[str, tuple[Any, Any]] = {
            "keys": (server.advertise, AdvertisedKeys),
            "shares": (server.share, SharedKeys),
            "complaints": (server.complain, Complaints),
            "agree": (server.agree, Agreement),
            "unmask": (server.reveal, RevealedShares),
        }
        receive, kind = kinds[self.state.stage]
        return bool(receive(self.pseudonym, kind.model_validate_json(self.message)))


def mixed(summed: SumTerms, every: int = 2) -> tuple[SecureSumServer, list[SumDevice]]:
    """Return a cohort whose second member, and every `every`-th after it, is a browser's."""
    server, devices = cohort(summed)
    return server, [
        BrowserMember(device.pseudonym, device.state, device.vector) if place % every == 1 else device
        for place, device in enumerate(devices)
    ]


def receive(server: SecureSumServer, browsers: list[BrowserMember], *, first: bool) -> list[dict[str, Any]]:
    """Return the browser end's results for the server's answers to all members, computed in one process."""
    if first:
        questions: list[tuple[str, Any]] = [("sum_begins", member.state.terms.model_dump_json()) for member in browsers]
        return ask_node(questions)
    asked = []
    for member in browsers:
        reply = answer(server, member)
        assert reply is not None
        reported = {"state": member.kept, "reply": reply.model_dump_json(), "vector": member.vector.tobytes().hex()}
        asked.append(("sum_hears", reported))
    return ask_node(asked)


@pytest.mark.parametrize(("mode", "size"), [("active", 8), ("semi_honest", 8), ("active", 101)])
def test_sum_of_python_and_browser_devices_is_exact_despite_dropouts(mode: str, size: int) -> None:
    graph = "sparse" if size > 100 else "complete"
    summed = terms(size, length=300, mode=mode, graph=graph, bits=64 if mode == "active" else 32)
    server, devices = mixed(summed, every=10 if graph == "sparse" else 2)  # a browser's 50 pairs of keys take a while
    stages = [stage for stage in STAGES if stage != "agree" or mode == "active"]
    left = devices
    for at, stage in enumerate(stages):
        if stage == "masked":
            left = (
                left[:-10] if graph == "sparse" else left[:-2]
            )  # some of each kind have shared their keys and are gone
        browsers = [each for each in left if isinstance(each, BrowserMember)]
        for member, reported in zip(browsers, receive(server, browsers, first=at == 0), strict=True):
            assert member.take(reported) == stage
            member.send(server)
        for device in (each for each in left if not isinstance(each, BrowserMember)):
            device.start() if at == 0 else device.receive(answer(server, device))
            deliver(server, device)
        if stage != "unmask":
            server.close()
    opened = server.open()
    assert len(opened.survivors) == len(left) == size - (10 if graph == "sparse" else 2)
    assert (opened.vector == plain_sum(left, range(len(left)))).all()


def false_answers(stage: str, reported: dict[str, Any], me: int) -> list[tuple[str, dict[str, Any]]]:
    """Return answers that no honest server gives at this stage, each with a word of the expected error."""
    if stage == "keys":
        twice = [{**reported["members"][0], "member": each["member"]} for each in reported["members"]]
        return [
            ("threshold", reported | {"threshold": 2}),
            ("same key", reported | {"members": twice}),
            ("roster is for x", reported | {"round": "x"}),
        ]
    if stage == "shares":
        stranger = [*reported["boxes"][:-1], reported["boxes"][-1] | {"member": 9_999}]
        return [("shared their keys", {"boxes": []}), ("not on the roster", {"boxes": stranger})]
    if stage == "agree":
        first, *others = reported["signatures"]
        forged = first | {"signature": others[0]["signature"]}
        return [("did not sign", {"signatures": [forged, *others]}), ("agreed on", {"signatures": []})]
    without = [each for each in reported["members"] if each != me]
    return [
        ("this device", {"members": without}),
        ("member 9999", {"members": [*reported["members"], 9_999]}),
        ("at least", {"members": [me]}),
    ]


def test_browser_device_refuses_invalid_server_messages_and_reports_an_unreadable_box() -> None:
    server, devices = mixed(terms(4, mode="active"))
    browsers = [each for each in devices if isinstance(each, BrowserMember)]
    for at, stage in enumerate(STAGES):
        if at:
            member = browsers[0]
            reply = answer(server, member)
            assert reply is not None
            roster = member.state.roster
            reported = json.loads(reply.model_dump_json())
            false = false_answers(STAGES[at - 1], reported, reported["me"] if roster is None else roster.me)
            vector = member.vector.tobytes().hex()
            asked = [{"state": member.kept, "reply": json.dumps(each), "vector": vector} for _, each in false]
            answers = ask_node([("sum_hears", each) for each in asked])
            assert all(word in each["refused"] for (word, _), each in zip(false, answers, strict=True)), answers
            if STAGES[at - 1] == "shares":
                spoilt = [reported["boxes"][0] | {"box": reported["boxes"][1]["box"]}, *reported["boxes"][1:]]
                (received,) = ask_node([("sum_hears", asked[0] | {"reply": json.dumps({"boxes": spoilt})})])
                complaint = json.loads(bytes.fromhex(received["message"]))
                assert complaint == {"members": [reported["boxes"][0]["member"]]}
        for browser, received in zip(browsers, receive(server, browsers, first=at == 0), strict=True):
            browser.take(received)
            browser.send(server)
        for device in (each for each in devices if not isinstance(each, BrowserMember)):
            device.start() if at == 0 else device.receive(answer(server, device))
            deliver(server, device)
        if stage != "unmask":
            server.close()
    assert len(server.open().survivors) == 4
