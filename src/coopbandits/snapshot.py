"""How is an agent stored? A versioned, documented container of JSON and arrays; no pickle.

Layout, little-endian: magic "CBa", version (1 byte), length of the JSON header (4 bytes), header,
arrays one after the other, CRC-32 of all before (4 bytes). The header's "arrays" lists each array
as [name, dtype, shape], in order; its other keys are the agent's.
"""

import json
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import as_bytes
from coopbandits.errors import StateError

_MAGIC = b"CBa"
_VERSION = 1
_PREFIX = struct.Struct("<3sBI")
_DTYPES = ("<f8", "<i8")


def pack(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> bytes:
    """Put a header and named arrays of float64 or int64 into bytes."""
    plain = {
        name: array.astype("<f8" if array.dtype.kind == "f" else "<i8")
        for name, array in arrays.items()
    }
    listed = [[name, array.dtype.str, array.shape] for name, array in plain.items()]
    text = json.dumps({**header, "arrays": listed}, sort_keys=True).encode()
    body = b"".join(
        [_PREFIX.pack(_MAGIC, _VERSION, len(text)), text, *(a.tobytes() for a in plain.values())]
    )
    return body + struct.pack("<I", zlib.crc32(body))


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Take apart what `pack` made; anything else is a `StateError`."""
    data = as_bytes(data)
    if len(data) < _PREFIX.size + 4 or data[:3] != _MAGIC:
        raise StateError(f"{len(data)} bytes that start with {data[:8]!r} are no stored agent")
    _, version, length = _PREFIX.unpack_from(data)
    if version != _VERSION:
        raise StateError(
            f"the agent was stored in version {version}; this release reads version {_VERSION}"
        )
    if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise StateError("the stored agent is damaged: its checksum does not match")
    try:
        header = json.loads(data[_PREFIX.size : _PREFIX.size + length])
        arrays, offset = {}, _PREFIX.size + length
        for name, dtype, shape in header.pop("arrays"):
            if dtype not in _DTYPES:
                raise ValueError(f"the array {name!r} has an unknown type {dtype!r}")
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(data[:-4], dtype=dtype, count=count, offset=offset)
            arrays[name] = array.reshape(shape).astype(dtype[1:])
            offset += array.nbytes
            if not np.isfinite(array).all():
                raise ValueError(f"the array {name!r} holds NaN or infinity")
        if offset != len(data) - 4:
            raise ValueError("there is more than the header lists")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StateError(f"the stored agent's contents make no sense: {error!r}") from error
    return header, arrays
