"""Random messages of every kind, drawn from the JSON schemas of the Python wire, and damaged copies of them.

A message is drawn as the JSON that either end might send: keys in any order, fields with defaults sometimes left out,
and offsets and base64 in every accepted form. `TIDY` repairs what the wire checks across fields.
"""

from __future__ import annotations

import base64
import copy
import json
import math
import string
from collections.abc import Callable
from random import Random
from typing import Any

from pydantic import BaseModel

from protocol.protections import SUMMED
from tests.doubles.wire_messages import EXAMPLES

Json = Any
NOT_OF_A_DEVICE = frozenset({"QueuedRound"})
"""Messages between the operator and the backend."""
KINDS: dict[str, type[BaseModel]] = {
    type(each).__name__: type(each) for each in EXAMPLES if type(each).__name__ not in NOT_OF_A_DEVICE
}
LETTERS = string.ascii_letters + string.digits + ' "\\/<>&\b\f\n\r\t\x00\x1f\x7fäß\u2028\u202b\ufeffمدينة新闻👷🏽'
CHARACTERS = "".join(Random(1).choices(LETTERS, k=5_000))
"""Texts are cut from these."""
ODD_NUMBERS = (0.0, 1.0, 0.1, 1 / 3, 1e-5, 9.99e-6, 1e-7, 1e15, 1e16, 123456789012345680.0, 5e-324, 1.5e300, 2.0**53)
MEMBERS = range(1, 10_001)
SUMMED_KINDS = {each.model_fields["kind"].default for each in SUMMED}


def digits(rng: Random, low: int, high: int, alphabet: str = string.digits) -> str:
    return "".join(rng.choices(alphabet, k=rng.randint(low, high)))


PATTERNS: dict[str, Callable[[Random], str]] = {
    r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}$": lambda rng: (
        rng.choice(string.ascii_letters) + digits(rng, 0, rng.choice((9, 79)), string.ascii_letters + "0123456789._:~-")
    ),
    r"^r[0-9]{1,9}$": lambda rng: "r" + digits(rng, 1, 9),
    r"^round-[1-9][0-9]{0,8}$": lambda rng: "round-" + rng.choice("123456789") + digits(rng, 0, 8),
    r"^[A-Za-z0-9_-]{22,64}$": lambda rng: digits(rng, 22, 64, string.ascii_letters + "0123456789_-"),
    r"^[0-9a-f]{64}$": lambda rng: digits(rng, 64, 64, "0123456789abcdef"),
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\.[0-9]{1,4}$": lambda rng: (
        f"{digits(rng, 4, 4)}-11-2{digits(rng, 1, 1)}.{digits(rng, 1, 4)}"
    ),
}
ADDRESSES = (
    "https://example.org/a?b=c&d", "HTTP://Example.org:80", "javascript:alert(1)", "http://", "//example.org",
    "http://:80/", "https://user@host@b.org/x", "http://[::1]:8/", "http://[::1/", "http://[zz]/", "http://ä.org/",
    "http://a\u2100b.org/", "https://example.org/\u00a0", " https://example.org", "https://example.org/x ",
    "https://example.org/a b", "java\nscript:1", "https://@/", "http://[fe80::1%eth0]/", "http://a]b/",
    "https://\u2028", "ftp://example.org", "http:/example.org",
)  # fmt: skip


class Drawing:
    """Draws JSON for schemas of one set of definitions."""

    def __init__(self, kind: type[BaseModel], rng: Random) -> None:
        self.schema = kind.model_json_schema()
        self.rng = rng

    def message(self) -> Json:
        return self.drawn(self.schema)

    def drawn(self, schema: dict[str, Any]) -> Json:
        schema, rng = self.resolved(schema), self.rng
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if "discriminator" in schema:
            tag, chosen = rng.choice(list(schema["discriminator"]["mapping"].items()))
            return {"kind": tag, **self.drawn({"$ref": chosen})}
        if choices := schema.get("anyOf"):
            return self.drawn(rng.choice(choices))
        by_type = {
            "object": self.object,
            "array": self.array,
            "string": self.text,
            "integer": self.integer,
            "number": self.number,
        }
        if schema["type"] in by_type:
            return by_type[schema["type"]](schema)
        return None if schema["type"] == "null" else rng.random() < 0.5

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in schema:
            return schema
        found: dict[str, Any] = self.schema["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        return found

    def object(self, schema: dict[str, Any]) -> Json:
        rng = self.rng
        if "properties" not in schema:
            names = {"g." + digits(rng, 1, 6, string.ascii_lowercase + "._é") for _ in range(rng.randint(0, 3))}
            return {name: self.drawn(schema["additionalProperties"]) for name in names}
        fields = list(schema["properties"].items())
        made = {
            name: self.drawn(one) for name, one in fields if name in schema.get("required", ()) or rng.random() < 0.7
        }
        TIDY.get(schema["title"], lambda made, rng: None)(made, rng)
        if schema.get("additionalProperties") is True:
            made["other" + digits(rng, 1, 3)] = rng.choice(("text", None, ["1", "é"]))
        if rng.random() < 0.5:
            made = dict(rng.sample(list(made.items()), len(made)))
        return made

    def array(self, schema: dict[str, Any]) -> Json:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 4), least + self.rng.choice((0, 1, 2, 4)))
        return [self.drawn(schema["items"]) for _ in range(self.rng.randint(least, most))]

    def text(self, schema: dict[str, Any]) -> Json:
        rng = self.rng
        if "pattern" in schema:
            return PATTERNS[schema["pattern"]](rng)
        if schema.get("format") == "date-time":
            return moment(rng)
        least, most = schema.get("minLength", 0), schema.get("maxLength", 100)
        if schema.get("format") == "base64url":
            return encoded(rng, rng.randbytes(rng.randint(least, min(most, least + 90))))
        if schema.get("title") == "Url":
            return rng.choice(ADDRESSES)
        length = rng.choice((rng.randint(least, min(most, 20)), min(most, 120)))
        start = rng.randrange(len(CHARACTERS) - length)
        return CHARACTERS[start : start + length]

    def integer(self, schema: dict[str, Any]) -> Json:
        low = schema.get("minimum", -(2**53) + 1)
        high = schema.get("maximum", schema.get("exclusiveMaximum", 2**53) - 1)
        return self.rng.choice((low, high, self.rng.randint(low, high), self.rng.randint(low, min(high, low + 9))))

    def number(self, schema: dict[str, Any]) -> Json:
        rng = self.rng
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1e300))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 1e300))
        while True:
            drawn = rng.choice(
                (
                    rng.uniform(max(low, -10.0), min(high, 10.0)),
                    rng.choice(ODD_NUMBERS) * rng.choice((1, -1)),
                    math.copysign(10.0 ** rng.uniform(-30, 30), rng.uniform(-1, 1)),
                    low,
                    high,
                    rng.randint(-9, 9),
                )
            )
            outside = drawn == schema.get("exclusiveMinimum") or drawn == schema.get("exclusiveMaximum")
            if low <= drawn <= high and not outside:
                return drawn


def moment(rng: Random) -> str:
    day = f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    second = rng.choice(("", f":{rng.randint(0, 59):02}", f":{rng.randint(0, 59):02}.{digits(rng, 1, 9)}"))
    offset = rng.choice(
        ("Z", "z", "+00:00", "-00:00", f"{rng.choice('+-')}{rng.randint(0, 23):02}:{rng.randint(0, 59):02}")
    )
    return day + rng.choice("T _t") + time + second + offset


def encoded(rng: Random, content: bytes) -> str:
    text = rng.choice((base64.urlsafe_b64encode, base64.b64encode))(content).decode()
    return rng.choice((text, text.rstrip("=")))


def members(rng: Random, count: int) -> list[int]:
    return sorted(rng.sample(MEMBERS, count))


def _numbered(field: str) -> Callable[[dict[str, Any], Random], None]:
    def tidy(made: dict[str, Any], rng: Random) -> None:
        numbers = members(rng, len(made[field]))
        for place, number in enumerate(numbers):
            if isinstance(made[field][place], dict):
                made[field][place]["member"] = number
            else:
                made[field][place] = number

    return tidy


def _equal_widths(other: str) -> Callable[[dict[str, Any], Random], None]:
    def tidy(made: dict[str, Any], rng: Random) -> None:
        width = rng.randint(1, 6)
        made["scores"] = [[rng.uniform(-1e4, 1e4) for _ in range(width)] for _ in made["scores"]]
        if made.get(other):
            made[other] = (made[other] * 5)[: len(made["scores"])]

    return tidy


def _code(made: dict[str, Any], rng: Random) -> None:
    made["code"] %= made["codebook"]


def _topics(made: dict[str, Any], rng: Random) -> None:
    made["codebook"] = len(made["weights"])


def _subset(made: dict[str, Any], rng: Random) -> None:
    made["topics"] = sorted(rng.sample(range(made["codebook"]), rng.randint(1, min(8, made["codebook"] - 1))))


def _codebook(made: dict[str, Any], rng: Random) -> None:
    if made.get("shares"):
        made["shares"] = [1 / made["size"]] * made["size"]


def _protocol(made: dict[str, Any], rng: Random) -> None:
    if "codebooks" in made:
        made["codebooks"] = list({each["size"]: each for each in made["codebooks"]}.values())


def _distinct(*fields: str) -> Callable[[dict[str, Any], Random], None]:
    def tidy(made: dict[str, Any], rng: Random) -> None:
        for field in fields:
            made[field] = list(dict.fromkeys(made[field]))

    return tidy


def _popularity(made: dict[str, Any], rng: Random) -> None:
    _distinct("news", "popular")(made, rng)
    made["lifts"] = [rng.randint(-64, 64) for _ in made["news"]]


def _shards(made: dict[str, Any], rng: Random) -> None:
    made["shards"] = list({each["name"]: each for each in made["shards"]}.values())


def _chain(made: dict[str, Any], rng: Random) -> None:
    start = rng.randint(0, 9_000)
    for place, each in enumerate(made["releases"]):
        each["release"] = f"r{start + place}"


def _room(made: dict[str, Any], rng: Random) -> None:
    """Choose numbers for which a sum fits the ring."""
    made["bits"], made["fraction_bits"] = rng.choice(((32, 16), (64, 18), (64, 30)))
    made["clip" if "clip" in made else "bound"] = rng.choice((0.1, 1.0, 3.0))
    if "clip" in made:
        made["weight_limit"] = rng.choice((1, 8))
        made["sigma"] = 0 if made["weight_limit"] > 1 else rng.choice((0, 3, 900))
        made["cohort_limit"] = rng.randint(2, 1_000)
        _mode(made, rng)
        return
    made["cohort"] = rng.randint(2, 1_000)
    made["cohort_minimum"] = rng.randint(2, made["cohort"])
    made["headroom"] = rng.choice((0, 0.0, 1_000.5))
    if made.get("mode") == "active":
        made["graph"] = "complete"


def _mode(made: dict[str, Any], rng: Random) -> None:
    if made.get("mode") == "active":
        made["graph"] = "complete"


def _marks(made: dict[str, Any], rng: Random) -> None:
    made["owners_minimum"] = rng.choice((1, 3))
    made["sigma"] = 0 if made["owners_minimum"] == 1 else rng.choice((0, 5))
    made["dummies"] = rng.choice((0, 7)) if made["owners_minimum"] == 1 else 0
    made["bits"] = rng.choice((32, 64))
    _mode(made, rng)


def _roster(made: dict[str, Any], rng: Random) -> None:
    _numbered("members")(made, rng)
    made["me"] = rng.choice(made["members"])["member"]
    made["cohort"] = rng.randint(len(made["members"]), 10_000)


def _revealed(made: dict[str, Any], rng: Random) -> None:
    numbers = members(rng, len(made["seeds"]) + len(made["keys"]))
    rng.shuffle(numbers)
    for field in ("seeds", "keys"):
        own = sorted(numbers.pop() for _ in made[field])
        for number, each in zip(own, made[field], strict=True):
            each["member"] = number


def _manifest(made: dict[str, Any], rng: Random) -> None:
    made.pop("terms", None)
    if made["protection"]["kind"] in SUMMED_KINDS:
        made["terms"] = {"round": made["round"], "length": rng.randint(1, 2**27)}
        _room(made["terms"], rng)


def _pictures(made: dict[str, Any], rng: Random) -> None:
    for number, each in enumerate(made["shards"]):
        each["pictures"] = {"sha256": f"{rng.getrandbits(200):051x}{number:013}", "size_bytes": rng.randint(1, 10**6)}


TIDY: dict[str, Callable[[dict[str, Any], Random], None]] = {
    "BasisLaplaceReport": _equal_widths("counts"),
    "BasisL1Report": _equal_widths("shares"),
    "CodeReport": _code,
    "TopicsReport": _topics,
    "SubsetReport": _subset,
    "Codebook": _codebook,
    "RecallProtocol": _protocol,
    "CountList": _distinct("news"),
    "Popularity": _popularity,
    "PoolCodes": _shards,
    "PictureList": _pictures,
    "ReleaseChain": _chain,
    "SumTerms": _room,
    "SecureSum": _room,
    "UnionMarks": _marks,
    "Roster": _roster,
    "SharedKeys": _numbered("boxes"),
    "Shares": _numbered("boxes"),
    "Complaints": _numbered("members"),
    "Sharers": _numbered("members"),
    "Survivors": _numbered("members"),
    "Agreements": _numbered("signatures"),
    "RevealedShares": _revealed,
    "RoundManifest": _manifest,
}

WRONG: tuple[tuple[type | tuple[type, ...], tuple[Json, ...]], ...] = (
    (bool, (None, "x", [], {}, 2)),
    (str, (None, [], {}, "", "x", "r", "é" * 90, "a" * 1_001, "-" * 2_500, "2026-02-30T00:00Z", "2026-01-02T03:04")),
    ((int, float), (None, "x", [], {}, -1, 0, -0.5, 0.5, 1.0, 17, 10_001, 2**27 + 1, 1e12, -1e12, 1e300)),
    (list, (None, "x", {}, 5, [], [None])),
    (dict, (None, "x", [], 5, {})),
)
"""By what a value is: what it is replaced by. Nothing that pydantic would take for the same, such as "5" for 5."""


def places(value: Json, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for name, each in inner for place in places(each, (*at, name)))]


def damaged(message: Json, rng: Random) -> Json:
    """Return the message with one random change, which usually makes it invalid."""
    message = copy.deepcopy(message)
    way = rng.choice(places(message))
    holder: Json = {"": message}
    for step in ("", *way)[:-1]:
        holder = holder[step]
    name = ("", *way)[-1]
    value = holder[name]
    if isinstance(value, dict) and value and rng.random() < 0.7:
        if rng.random() < 0.5:
            del value[rng.choice(list(value))]
        else:
            value["unknown"] = 1
    elif isinstance(value, list) and value and rng.random() < 0.5:
        value[:] = value * rng.choice((2, 300)) if rng.random() < 0.5 else value[:-1]
    else:
        holder[name] = rng.choice(next((wrong for kind, wrong in WRONG if isinstance(value, kind)), ([], {})))
    return holder.get("") if not way and isinstance(holder, dict) else message


def as_json(message: Json) -> str:
    return json.dumps(message, ensure_ascii=False)
