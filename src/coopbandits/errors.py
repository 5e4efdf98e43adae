"""Whose fault is it? One tree of errors, drawn here.

    CoopBanditsError
    ├── InputError            the caller gave something wrong (also a ValueError)
    │   ├── ShapeError        an array of the wrong shape
    │   ├── NonFiniteError    NaN or infinity where a number is needed
    │   ├── ParameterError    a setting outside its range, or two that exclude each other
    │   ├── NetworkError      edges that make no network, or an agent that is not in it
    │   ├── SimilarityError   a K_z that is no kernel matrix, or one for other agents
    │   └── ExperimentError   an experiment that cannot be run as it is written
    ├── LocalProtocolError    the caller used an agent out of order (a reward for no decision)
    ├── RemoteProtocolError   a peer sent what the protocol does not allow; the only error a peer
    │                         can cause
    ├── StateError            stored bytes that are damaged, too new, or another agent's
    └── MissingExtraError     a package that an extra brings is not installed (also an ImportError)

A message says what was given, what is expected, and what to do. A call that raises has changed
nothing.
"""


class CoopBanditsError(Exception):
    """The root: catches everything this package raises on purpose."""


class InputError(CoopBanditsError, ValueError):
    """The caller gave something wrong."""


class ShapeError(InputError):
    """An array has the wrong shape."""


class NonFiniteError(InputError):
    """NaN or infinity stands where a number is needed."""


class ParameterError(InputError):
    """A setting lies outside its range, or two settings exclude each other."""


class NetworkError(InputError):
    """The edges make no network, or an agent is not in it."""


class SimilarityError(InputError):
    """K_z is no kernel matrix, or it is one for other agents."""


class ExperimentError(InputError):
    """An experiment cannot be run as it is written."""


class LocalProtocolError(CoopBanditsError):
    """The caller used an agent out of order."""


class RemoteProtocolError(CoopBanditsError):
    """A peer sent what the protocol does not allow."""


class StateError(CoopBanditsError):
    """Stored bytes are damaged, too new, or belong to another agent."""


class MissingExtraError(CoopBanditsError, ImportError):
    """A package that an extra brings is not installed."""
