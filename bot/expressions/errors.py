"""What an expression can fail with; nothing else ever leaves this package for a bad input."""

from __future__ import annotations


class ExpressionError(Exception):
    """An expression that cannot be parsed or evaluated.

    `position` counts characters from the start of the expression (or of the template that holds it); -1 means
    that no place is known.
    """

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.position = position

    def __str__(self) -> str:
        return self.message if self.position < 0 else f"{self.message} (at character {self.position + 1})"

    def moved(self, offset: int) -> ExpressionError:
        """The same error with its position counted from `offset` characters further left."""
        self.position = self.position + offset if self.position >= 0 else offset
        return self


class BudgetExceededError(ExpressionError):
    """An expression that asks for more work or memory than one evaluation may use; it is never tolerated."""
