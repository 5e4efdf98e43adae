"""Errors of the client: one tree.

CoopBanditsError
└── ClientError                 a call did not succeed; `problem` says why, if the node did
    ├── UnavailableError        no answer, or none but "try again", within the deadline
    └── UnexpectedAnswerError   what answered is no node, or one of another version
"""

from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.api import Problem


class ClientError(CoopBanditsError):
    """A call did not succeed.

    Attributes:
        status: The HTTP status; None if no answer came.
        problem: What the node says of it; None if it says nothing.
        kind: The problem's kind, such as "event-closed"; None without a problem.
    """

    def __init__(
        self, message: str, status: int | None = None, problem: Problem | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.problem = status, problem
        self.kind = problem.type.rpartition("/")[2] if problem is not None else None


class UnavailableError(ClientError):
    """No answer came within the deadline, or none but that it makes sense to try again."""


class UnexpectedAnswerError(ClientError):
    """An answer came that no node of this version gives."""
