"""Matches a mute rule's words, phrase or regular expression against texts, in time proportional to their length.

Regular expressions are a subset without backreferences and lookaround, run as an automaton (Thompson, 1968): literals,
`.`, classes `[a-z]` and `[^a-z]`, `\\d`, `\\w`, `\\s` (ASCII) and their opposites, groups, `|`, `*`, `+`, `?`, `{m,n}`,
`^` and `$`. So no rule can hang the device, and the browser's device (reading/mute_patterns.ts) gives the same results.
Case is ignored. Texts and patterns are compared in the form that `folded` returns.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from device_app.store.searches import UNSPACED, folded

PatternKind = Literal["word", "phrase", "regex"]
PATTERN_CHARS = 200
TEXT_CHARS = 20_000
REGEX_TEXT_CHARS = 4_000
"""Only this many characters from the start of a longer text are matched."""
NODES_LIMIT = 400
REPEATS_LIMIT = 100
STATES_KEPT = 500


class PatternRefused(ValueError):
    """A pattern that can't be used; the message says why."""


Matches = Callable[[str], bool]
"""Tells whether a text, in the form that `plain` returns, matches."""


def plain(text: str) -> str:
    """Return a text in the form that patterns are matched against: folded, with single spaces."""
    return " ".join(folded(text[:TEXT_CHARS]).split())


def matcher(kind: PatternKind, pattern: str) -> Matches:
    """Return a function that tells whether a plain text matches.

    word: the text contains the words as whole words. phrase: the text contains the characters. Raises PatternRefused.
    """
    if not pattern.strip() or len(pattern) > PATTERN_CHARS:
        raise PatternRefused(f"must have 1 to {PATTERN_CHARS} characters")
    if kind == "regex":
        return _Automaton(_Parser(pattern.strip()).whole()).finds
    wanted = plain(pattern)
    if kind == "phrase" or UNSPACED.search(wanted):
        return lambda text: wanted in text
    return lambda text: _has_word(text, wanted)


def _has_word(text: str, word: str) -> bool:
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not (_is_letter(before) or _is_letter(after)):
            return True
        at = text.find(word, at + 1)
    return False


def _is_letter(character: str) -> bool:
    return re.match(r"[^\W_]", character) is not None


class _Chars(NamedTuple):
    """Ranges of code points; negated: all others, without line breaks."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False

    def has(self, code: int) -> bool:
        return any(low <= code <= high for low, high in self.ranges) != self.negated


@dataclass
class _Node:
    """A state of the automaton: reads a character, or passes on without one (only there, for 'start' and 'end')."""

    kind: Literal["read", "pass", "start", "end", "match"]
    chars: _Chars | None = None
    after: tuple[int, ...] = ()


_DIGIT = ((48, 57),)
_WORD = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE = ((9, 13), (32, 32))
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_ANY = _Chars(((10, 10),), negated=True)
_Part = Callable[[int], int]
"""Adds a part's nodes in front of the node it leads to; returns the first."""


class _Parser:
    """Reads a regular expression. Nodes are built from its end, each part in front of what follows it."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self._nodes: list[_Node] = []

    def whole(self) -> tuple[list[_Node], int]:
        """Return the nodes and the first of them. Raises PatternRefused."""
        part = self._either()
        if self._at < len(self._pattern):
            raise PatternRefused(f"has a “{self._pattern[self._at]}” too many")
        return self._nodes, part(self._add(_Node("match")))

    def _add(self, node: _Node) -> int:
        if len(self._nodes) >= NODES_LIMIT:
            raise PatternRefused("is too long with its repetitions")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        found = self._peek()
        if not found:
            raise PatternRefused("ends too early")
        self._at += 1
        return found

    def _either(self) -> _Part:
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        if len(options) == 1:
            return options[0]
        return lambda to: self._add(_Node("pass", after=tuple(option(to) for option in options)))

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))

        def build(to: int) -> int:
            for part in reversed(parts):
                to = part(to)
            return to

        return build

    def _repeated(self, part: _Part) -> _Part:
        while (sign := self._peek()) in ("*", "+", "?", "{") and sign:
            self._at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or self._count()
            part = self._times(part, least, most)
        return part

    def _count(self) -> tuple[int, int | None]:
        found = re.match(r"([0-9]{1,3})(,([0-9]{0,3}))?\}", self._pattern[self._at :])
        if found is None:
            raise PatternRefused("has a “{” without a number and “}”")
        self._at += found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > REPEATS_LIMIT or (most is not None and most < least):
            raise PatternRefused(f"may repeat a part at most {REPEATS_LIMIT} times")
        return least, most

    def _times(self, part: _Part, least: int, most: int | None) -> _Part:
        def build(to: int) -> int:
            if most is None:
                again = self._add(_Node("pass"))
                self._nodes[again].after = (part(again), to)
                to = again
            else:
                end = to
                for _ in range(most - least):
                    to = self._add(_Node("pass", after=(part(to), end)))
            for _ in range(least):
                to = part(to)
            return to

        return build

    def _atom(self) -> _Part:
        sign = self._next()
        if sign == "(":
            if self._pattern.startswith("?:", self._at):
                self._at += 2
            elif self._peek() == "?":
                raise PatternRefused("may not look ahead or behind, or name groups")
            part = self._either()
            if self._next() != ")":
                raise PatternRefused("has a “(” that isn't closed")
            return part
        if sign == "[":
            return self._reads(self._class())
        if sign == ".":
            return self._reads(_ANY)
        if sign in "^$":
            return lambda to: self._add(_Node("start" if sign == "^" else "end", after=(to,)))
        if sign in "*+?{":
            raise PatternRefused(f"has a “{sign}” with nothing to repeat")
        if sign == "\\":
            return self._escaped(self._next())
        return self._literal(sign)

    def _escaped(self, sign: str) -> _Part:
        if sign.lower() in _CLASSES:
            return self._reads(_Chars(_CLASSES[sign.lower()], negated=sign.isupper()))
        if sign.isascii() and sign.isalnum():
            raise PatternRefused(f"may not use “\\{sign}”")
        return self._literal(sign)

    def _literal(self, sign: str) -> _Part:
        codes = [ord(each) for each in folded(sign)]

        def build(to: int) -> int:
            for code in reversed(codes):
                to = self._add(_Node("read", _Chars(((code, code),)), (to,)))
            return to

        return build

    def _reads(self, chars: _Chars) -> _Part:
        return lambda to: self._add(_Node("read", chars, (to,)))

    def _class(self) -> _Chars:
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while (sign := self._next()) != "]" or not ranges:
            if sign == "\\":
                sign = self._next()
                if sign in _CLASSES:
                    ranges += _CLASSES[sign]
                    continue
                if sign.isascii() and sign.isalnum():
                    raise PatternRefused(f"may not use “\\{sign}” in brackets")
            low = high = _code(sign)
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = _code(self._next())
            if high < low:
                raise PatternRefused("has a range that runs backwards")
            ranges.append((low, high))
        return _Chars(tuple(ranges), negated)


def _one_of(chars: _Chars | None) -> str:
    """Return the class as `re` writes it."""
    assert chars is not None
    ranges = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in chars.ranges)
    return f"[{'^' if chars.negated else ''}{ranges}]"


def _code(sign: str) -> int:
    same = folded(sign)
    return ord(same if len(same) == 1 else sign)


class _Automaton:
    """Runs nodes over a text, all alternatives at once; keeps the transitions that it has computed."""

    def __init__(self, compiled: tuple[list[_Node], int]) -> None:
        self._nodes, self._first = compiled
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._idle = self._closure([self._first], at_start=False, at_end=False)
        self._begins = re.compile("|".join(_one_of(self._nodes[one].chars) for one in self._idle if one >= 0) or "(?!)")

    def finds(self, text: str) -> bool:
        """Return whether the expression matches anywhere in a text."""
        text = text[:REGEX_TEXT_CHARS]
        now = self._closure([self._first], at_start=True, at_end=not text)
        place = -1
        while place < len(text) - 1:
            if self._matched(now):
                return True
            place += 1
            if now == self._idle and place < len(text) - 1:  # nothing has begun: go on where something can
                begins = self._begins.search(text, place)
                place = len(text) - 1 if begins is None else begins.start()
            character = text[place]
            if place == len(text) - 1:
                now = self._step(now, character, at_end=True)
                break
            known = self._steps.get((now, character))
            if known is None:
                known = self._step(now, character, at_end=False)
                if len(self._steps) >= STATES_KEPT * 10:
                    self._steps.clear()
                self._steps[now, character] = known
            now = known
        return self._matched(now)

    def _matched(self, states: frozenset[int]) -> bool:
        return -1 in states

    def _step(self, now: Iterable[int], character: str, *, at_end: bool) -> frozenset[int]:
        code = ord(character)
        to = [self._first]
        for state in now:
            node = self._nodes[state] if state >= 0 else None
            if node is not None and node.chars is not None and node.chars.has(code):
                to += node.after
        return self._closure(to, at_start=False, at_end=at_end)

    def _closure(self, states: Iterable[int], *, at_start: bool, at_end: bool) -> frozenset[int]:
        """Return the states that read a character, reached without one; -1 if the match is complete."""
        found: set[int] = set()
        seen: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            node = self._nodes[state]
            if node.kind == "match":
                found.add(-1)
            elif node.kind == "read":
                found.add(state)
            elif node.kind == "pass" or (at_start if node.kind == "start" else at_end):
                waiting += node.after
        return frozenset(found)
