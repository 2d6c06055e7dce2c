"""What a function says where it cannot answer: an error's code, as every surface knows it, and one sentence."""

from __future__ import annotations

UNKNOWN, WRONG = "#N/A", "#VALUE!"
CODES = {
    UNKNOWN: "a model or card that is not in the catalogue, or no card that fits",
    WRONG: "an argument that is wrong, or a job that contradicts itself",
}


class Fault(ValueError):
    """A refused call. code: "#N/A" or "#VALUE!"; the text names the argument, its value and what is right."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
