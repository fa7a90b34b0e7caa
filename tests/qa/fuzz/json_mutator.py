"""Mutations of JSON that mostly stay JSON: a fuzzer of bytes alone seldom gets past the syntax to a reader's rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from random import Random
from typing import Any

Json = Any
JsonPlace = tuple[MutableMapping[str, Json] | MutableSequence[Json], Any]
"""What holds a value, and its key or position there."""
Mutate = Callable[[bytes, int], bytes]

BYTES_SHARE = 0.15
"""Of mutations that are of bytes all the same: a syntax is to be broken, too."""
MOST_AT_ONCE = 3
ODD_VALUES: tuple[Json, ...] = (
    None, True, False, [], {}, "", "x", " ", "\x00", "\ud800", "\u202e", "null", "0", "1e999", "a" * 500,
    0, -0.0, 1, -1, 0.5, 127, 128, 255, 256, 2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30,
    1e-320, 1e308, float("inf"), float("nan"),
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-26T08:00:00Z", "2026-02-30",
    "https://[::1/", "javascript:alert(1)", "../../x", "AAAA", "AA==", "=", "round-1", "r1", "f" * 64,
)  # fmt: skip


class JsonMutator:
    """Changes one JSON line of several: a whole export, one item of JSON Lines, or a message after its name."""

    def __init__(self, mutate_bytes: Mutate) -> None:
        """mutate_bytes: mutates an input within a size limit, for inputs without JSON and now and then for others."""
        self.mutate_bytes = mutate_bytes

    def __call__(self, data: bytes, limit_bytes: int, seed: int) -> bytes:
        """Return another input of at most limit_bytes, determined by the seed and mutate_bytes."""
        rng = Random(seed)
        lines = data.split(b"\n")
        read = {place: value for place, line in enumerate(lines) if (value := _read(line)) is not None}
        if not read or rng.random() < BYTES_SHARE:
            return self.mutate_bytes(data, limit_bytes)
        chosen = rng.choice(list(read))
        root = [read[chosen]]
        for _ in range(rng.randint(1, MOST_AT_ONCE)):
            self._change(root, rng)
        lines[chosen] = json.dumps(root[0], ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        mutated = b"\n".join(lines)
        return mutated if len(mutated) <= limit_bytes else self.mutate_bytes(data, limit_bytes)

    def _change(self, root: MutableSequence[Json], rng: Random) -> None:
        places = list(_places(root))
        holder, key = rng.choice(places)
        value = holder[key]
        change = rng.random()
        if change < 0.3:
            holder[key] = _copy(rng.choice(ODD_VALUES))
        elif change < 0.45:
            other, its_key = rng.choice(places)
            holder[key] = _copy(other[its_key])
        elif isinstance(value, dict):
            _change_keys(value, rng)
        elif isinstance(value, list):
            _change_items(value, rng)
        elif isinstance(value, str):
            holder[key] = self._changed_text(value, rng)
        elif isinstance(value, bool) or value is None:
            holder[key] = not value
        else:
            holder[key] = rng.choice((value + 1, value - 1, -value, value * 10, value / 3, str(value), [value]))

    def _changed_text(self, text: str, rng: Random) -> str:
        at = rng.randint(0, len(text))
        character = rng.choice('0aZ_-:.+=/\\"<>& \t\x00\x7fß\u2028\U0001f477')
        return rng.choice(
            (
                text[:at] + character + text[at:],
                text[:at],
                text[at:],
                text[:at] + text[at + 1 :],
                text.swapcase(),
                text * 2,
                self.mutate_bytes(text.encode("utf-8", "replace"), len(text) + 8).decode("utf-8", "replace"),
            )
        )


def _read(line: bytes) -> Json:
    """Return the parsed JSON; None if it isn't JSON, or has nothing to change."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _copy(value: Json) -> Json:
    return json.loads(json.dumps(value))


def _places(root: MutableSequence[Json]) -> Iterator[JsonPlace]:
    """Yield every value below the root, with its container."""
    queue: list[Any] = [root]
    while queue:
        holder = queue.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(value, dict | list):
                queue.append(value)


def _change_keys(value: dict[str, Json], rng: Random) -> None:
    key = rng.choice(list(value) or ["x"])
    taken = value.pop(key, None)
    again = rng.choice((None, key + "_", key.upper(), "kind", "x"))
    if again is not None:
        value[again] = taken


def _change_items(value: list[Json], rng: Random) -> None:
    at = rng.randint(0, len(value))
    change = rng.choice(("cut", "drop", "repeat", "shuffle", "add"))
    if change == "cut":
        del value[at:]
    elif change == "drop":
        del value[at : at + 1]
    elif change == "repeat":
        value[at:at] = _copy(value[:at][-1:] * rng.choice((1, 2, 40)))
    elif change == "shuffle":
        rng.shuffle(value)
    else:
        value.insert(at, _copy(rng.choice(ODD_VALUES)))
