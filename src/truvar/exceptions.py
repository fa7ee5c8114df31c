"""Exceptions. Every one that reports a mistake of the caller derives from `TruvarError`.

| class | raised when |
|---|---|
| `InvalidArgumentError` | an argument has the wrong type, shape or range |
| `InvalidDomainError` | a domain, table or file of candidates cannot be used |
| `PointNotInDomainError` | a point is not one of the domain's |
| `InvalidModelError` | kernel, mean, noise or tasks do not make a model |
| `UnknownPolicyError` | there is no policy of that name |
| `UnsupportedGoalError` | a policy or a measure of quality does not serve the study's goal |
| `UnsupportedNoiseLevelsError` | a policy cannot use the study's noise levels |
| `InvalidProblemError` | a problem file has a mistake |
| `InvalidMeasurementError` | a measured value, or the file it is in, cannot be used |
| `UnknownSuggestionError` | an id or suggestion is not known, or no longer pending |
| `ConflictingMeasurementError` | the suggestion already has another value |
| `StudyStartedError` | something must be done before the first suggestion |
| `StudyBusyError` | another asyncio task has a transaction of the study open |
| `SerializationError` | an object cannot be stored, or was stored by another version |
| `StorageError` | a store cannot be used at the moment |
| `UncertainChangeError` | the connection to a store was lost while a change was stored, so that it may be stored |
| `StoreNotFoundError`, `StudyNotFoundError`, `StudyExistsError` | a store or study is missing, or its name is taken |
| `DamagedStudyError` | the stored events of a study are damaged |
| `MeasurementFailedError` | the measuring function or program failed too often |
| `ExecutorError` | an executor or cluster broke, cannot be reached or takes no more work |
| `OutputError` | a file or folder of results cannot be written |
| `ServiceError`, `AccessDeniedError`, `LimitExceededError` | a server refused a request |
| `ChoiceFailedError` | a server gave up a choice that took too long |
| `ChangeCancelledError` | a change was cancelled before it was stored |
| `MissingDependencyError` | an optional library is not installed |

`OutlierWarning` is issued when a measured value may be a typing error, or is taken for an
outlier.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class TruvarError(ValueError):
    """Base class for mistakes of the caller. Nothing was changed when it is raised.

    The message is one line: what was expected, what was given, how to fix it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(
            " ".join(message.split())
        )  # other libraries' messages may contain line breaks


class InvalidArgumentError(TruvarError):
    """An argument has the wrong type, shape or range."""


class InvalidDomainError(TruvarError):
    """A domain, table or file of candidates cannot be used."""


class PointNotInDomainError(InvalidDomainError):
    """A point is not one of the domain's."""


class InvalidModelError(TruvarError):
    """Kernel, mean, noise or tasks do not make a model."""


class UnknownPolicyError(TruvarError):
    """There is no policy of that name."""


class UnsupportedGoalError(TruvarError):
    """A policy or a measure of quality does not serve the study's goal."""


class UnsupportedNoiseLevelsError(TruvarError):
    """A policy cannot use the study's noise levels."""


class InvalidProblemError(TruvarError):
    """A problem file has a mistake."""


class InvalidMeasurementError(TruvarError):
    """A measured value, or the file it is in, cannot be used."""


class UnknownSuggestionError(InvalidMeasurementError):
    """An id or suggestion is not known to the study, or no longer pending."""


class ConflictingMeasurementError(InvalidMeasurementError):
    """The suggestion already has another value."""


class StudyStartedError(TruvarError):
    """Something must be done before the first suggestion."""


class StudyBusyError(TruvarError):
    """Another asyncio task has a transaction of the study open.

    Waiting for it would block the event loop.
    """


class SerializationError(TruvarError):
    """An object cannot be stored, or was stored by another version of truvar."""


class StorageError(TruvarError):
    """A store cannot be used at the moment; the request itself had no mistake."""


class UncertainChangeError(StorageError):
    """The connection to a store was lost during a change, which may have been stored.

    The same change can be made again: a value for the same suggestion, or with the same key, counts
    once.
    """


class StoreNotFoundError(TruvarError):
    """There is no store at that path or URL."""


class StudyNotFoundError(TruvarError):
    """There is no study of that name."""


class StudyExistsError(TruvarError):
    """The name of a new study is taken."""


class DamagedStudyError(TruvarError):
    """The stored events of a study are damaged."""


class MeasurementFailedError(TruvarError):
    """The measuring function or program failed too often."""


class ExecutorError(TruvarError):
    """An executor or cluster broke, cannot be reached or takes no more work.

    A run with another one can continue.
    """


class OutputError(TruvarError):
    """A file or folder of results cannot be written."""


class ServiceError(TruvarError):
    """A server could not be reached or refused a request."""


class AccessDeniedError(ServiceError):
    """A server does not accept the token for this request."""


class LimitExceededError(ServiceError):
    """A request or upload is larger than a server allows."""


class ChoiceFailedError(ServiceError):
    """A server gave up a choice: it took longer than allowed, or the process that made it ended."""


class ChangeCancelledError(TruvarError):
    """A change of a study was cancelled before it was stored."""


class MissingDependencyError(TruvarError, ImportError):
    """An optional library is not installed."""


class OutlierWarning(UserWarning):
    """A measured value may be an outlier, the model leaves it out, or cannot tell the values apart.

    Args:
        message: The message.
        id: Id of the measurement, if it is known.
    """

    def __init__(self, message: str, id: int | None = None) -> None:
        super().__init__(message)
        self.id = id


class RepeatedMeasurementWarning(UserWarning):
    """Rows of a table of measurements were told before and are left out."""


class Finished(Exception):
    """Raised by `ask` when there is nothing to suggest.

    Attributes:
        reason: Why: the study is finished, or its policy sees nothing more to gain.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"nothing to measure: {reason}")
        self.reason = reason


class BudgetSpent(Finished):
    """Raised by `ask` when a vehicle's budget allows no further measurement.

    The study itself may go on.
    """


def import_optional(module: str, purpose: str, extra: str) -> Any:
    """Import a module of an optional library.

    Args:
        module: Dotted name of the module.
        purpose: What it is needed for; opens the message ("drawing needs matplotlib, ...").
        extra: The extra of truvar that installs it.

    Raises:
        MissingDependencyError: If the library is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        needed = f"{purpose} needs {module.partition('.')[0]}"
        raise MissingDependencyError(
            f'{needed}, which is missing: pip install "truvar[{extra}]" ({error})'
        ) from None
