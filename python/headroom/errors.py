"""What headroom's calls raise. str(error) names the wrong value and where it was found; error.remedy says what to do."""
from __future__ import annotations

from typing import Iterable

from ._engine import Change


class Error(Exception):
    """Base of the errors below."""

    remedy: str

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy

    def __str__(self) -> str:
        return self.args[0] + (f"\n  {self.remedy}" if self.remedy else "")


class UsageError(Error, ValueError):
    """A wrong option, or options that conflict."""


class FormatError(Error, ValueError):
    """A file whose content cannot be used."""


class RunError(Error, RuntimeError):
    """The machine failed: input or output, a device, or a loss that is not finite."""


class InternalError(Error, RuntimeError):
    """A defect of headroom."""


class BudgetError(Error, MemoryError):
    """The budget is above what the machine can give, or below what the work needs."""


class Refusal(BudgetError):
    """The budget holds no plan. Raised before anything is written.

    budget_bytes: the budget; minimum_bytes: the least budget that holds a plan; changes: options that need less memory (`Change`)."""

    budget_bytes: int
    minimum_bytes: int
    changes: list[Change]

    def __init__(self, message: str, remedy: str, budget_bytes: int, minimum_bytes: int, changes: Iterable[Change]) -> None:
        super().__init__(message, remedy)
        self.budget_bytes = budget_bytes
        self.minimum_bytes = minimum_bytes
        self.changes = list(changes)
