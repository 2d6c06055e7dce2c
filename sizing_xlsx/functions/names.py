"""Which name of a list a text means: without regard to case, and short where that is unambiguous.

In this order: the name itself; a word that stands for it; what follows the first part of one name alone
("Llama-3.1-8B" of "meta-llama/Llama-3.1-8B", "A10" of "NVIDIA A10"); a part of one name alone that begins where a word
begins, however the words are parted ("mixtral 8x22b").
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from ..formula.domains import nearest, told
from .faults import Fault

FEW = 5  # names that an ambiguous text lists
SHORT_LIST = 20  # names that are listed whole


def tail(name: str) -> str:
    """A name without its first part, the owner of a model or the maker of a card; "" where it has one part alone."""
    return name.partition("/")[2] or name.partition(" ")[2]


def spaced(text: str) -> str:
    """A text without white space around it, and one space for each run within."""
    return " ".join(text.split())


def parts(text: str) -> str:
    """A text as its words, each after a stroke, in lower case: what a part of a name is looked for in."""
    return "/" + text.casefold().replace(" ", "/").replace("-", "/")


class Names:
    """The names of one list and how they may be called.

    what: what each is, in words ("model"). words: further words, each for one of the names.
    """

    def __init__(self, names: Collection[str], what: str, words: Mapping[str, str] | None = None) -> None:
        self.names, self.what = tuple(names), what
        self.exact = {spaced(name).casefold(): name for name in self.names}
        known = {word.casefold(): name for word, name in (words or {}).items() if name.casefold() in self.exact}
        self.exact = {**known, **self.exact}
        self.tails: dict[str, list[str]] = {}
        for name in self.names:
            self.tails.setdefault(tail(name).casefold(), []).append(name)
        self.parts = {name: parts(name) for name in self.names}
        self.find = lru_cache(maxsize=4096)(self._find)

    def _find(self, text: str) -> str:
        folded = text.casefold()
        if folded in self.exact:
            return self.exact[folded]
        meant = self.tails.get(folded) if folded else None
        if not meant:
            wanted = parts(text)
            meant = [name for name in self.names if folded and wanted in self.parts[name]]
        if len(meant) == 1:
            return meant[0]
        raise ValueError(self._ambiguous(meant) if meant else self._unknown(text))

    def _ambiguous(self, meant: list[str]) -> str:
        more = f" and {len(meant) - FEW} more" if len(meant) > FEW else ""
        return f"it may mean {', '.join(meant[:FEW])}{more}: write one of them"

    def _unknown(self, text: str) -> str:
        if len(self.names) <= SHORT_LIST:
            return f"it must be {self._right()}{nearest(text, self.names)}"
        return f"it is none of the {len(self.names)} {self.what}s{nearest(text, self.names)}"

    def _right(self) -> str:
        if len(self.names) <= SHORT_LIST:
            return f"one of {'; '.join(self.names)}"
        return f"the name of one of the {len(self.names)} {self.what}s"

    def resolve(self, argument: str, value: object, code: str) -> str:
        """The name that an argument means; Fault with the code and one sentence where it means none, or several."""
        if not isinstance(value, str):
            raise Fault(code, f"{argument} is {told(value)}; it must be {self._right()}")
        try:
            return str(self.find(spaced(value)))
        except ValueError as error:
            raise Fault(code, f"{argument} is {told(value)}; {error}") from None
