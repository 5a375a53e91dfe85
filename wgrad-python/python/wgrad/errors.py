"""The exceptions of `wgrad`, with TensorFlow's names.

Each is also the exception that Python itself has for such a mistake, so `except ValueError` works, too.
"""


class OpError(Exception):
    """The base of all exceptions of this module."""

    @property
    def message(self) -> str:
        return str(self)


class InvalidArgumentError(OpError, ValueError):
    """Shapes, values or options that do not fit."""


class InvalidTypeError(InvalidArgumentError, TypeError):
    """A dtype that an op does not take."""


class FailedPreconditionError(OpError, RuntimeError):
    """A call in a state that does not allow it."""


class NotFoundError(OpError, FileNotFoundError):
    """A file, a device or an adapter that does not exist."""


class AlreadyExistsError(OpError, FileExistsError):
    """A file that exists and must not be replaced."""


class PermissionDeniedError(OpError, PermissionError):
    """A file that may not be read or written."""


class ResourceExhaustedError(OpError, MemoryError):
    """The device's memory is used up."""


class UnavailableError(OpError, ConnectionError):
    """The device is lost."""


class UnimplementedError(OpError, NotImplementedError):
    """Something that wgrad does not have."""


class OutOfRangeError(OpError, IndexError):
    """There is nothing left to read."""


class UnknownError(OpError, OSError):
    """The operating system refused something."""


class InternalError(OpError, RuntimeError):
    """A mistake in wgrad."""


class DataLossError(OpError, OSError):
    """A file that is damaged."""


class AbortedError(OpError, RuntimeError):
    """A call that another one ended. It is raised by programs only, as are the following exceptions."""


class CancelledError(OpError, RuntimeError):
    """A call that was cancelled."""


class DeadlineExceededError(OpError, TimeoutError):
    """A call that took too long."""


class UnauthenticatedError(OpError, PermissionError):
    """A call without valid credentials."""


class OperatorNotAllowedInGraphError(OpError, TypeError):
    """An operator of Python that needs the value of a tensor in a function."""


# TensorFlow's numbers of the kinds of errors.
(
    OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED,
) = range(17)
