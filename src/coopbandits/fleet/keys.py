"""Signatures of feeds: Ed25519 for real, keyed BLAKE2b for simulations, and files of private keys.

A private key is the 32 bytes of the seed (RFC 8032, 5.1.5). Its file is text of two lines, the kind
with a version and the seed in hexadecimal digits, and only its owner may read it:

    coopbandits ed25519 private key 1
    9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60
"""

import os
import stat
from collections.abc import Mapping
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from tempfile import mkstemp

from coopbandits.errors import InputError, MissingExtraError, StateError

try:
    from nacl import bindings
    from nacl.exceptions import BadSignatureError
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "PyNaCl is not installed, and signatures need it; try: pip install 'coopbandits[fleet]'"
    ) from error

PRIVATE_BYTES = 32
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64

_FIRST_LINE = "coopbandits ed25519 private key "
_VERSION = "1"


class Ed25519Keys:
    """Signs with a private key, and verifies with the public keys of a fleet.

    Args:
        private: 32 bytes.
        public: By origin, 32 bytes. No signature holds of an origin that is not among them.
    """

    def __init__(self, private: bytes, public: Mapping[str, bytes]) -> None:
        self.public, self._secret = _pair(private)
        for origin, key in public.items():
            if len(key) != PUBLIC_BYTES:
                raise InputError(
                    f"the public key of {origin!r} has {len(key)} bytes; expected {PUBLIC_BYTES}"
                )
        self._public = {origin: bytes(key) for origin, key in public.items()}

    def sign(self, data: bytes) -> bytes:
        """Sign as the owner of the private key."""
        signed: bytes = bindings.crypto_sign(data, self._secret)
        return signed[:SIGNATURE_BYTES]

    def verify(self, origin: str, data: bytes, signature: bytes) -> bool:
        """Tell whether an origin signed it."""
        key = self._public.get(origin)
        if key is None or len(signature) != SIGNATURE_BYTES:
            return False
        try:
            bindings.crypto_sign_open(signature + data, key)
        except BadSignatureError:
            return False
        return True


class HashKeys:
    """Signs with what everybody knows, an origin's name: fast, the same in each run, and unsafe.

    The signature is BLAKE2b of the data, keyed by a hash of the name.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._keys: dict[str, bytes] = {}

    def sign(self, data: bytes) -> bytes:
        """Sign as the own origin."""
        return self._tag(self._origin, data)

    def verify(self, origin: str, data: bytes, signature: bytes) -> bool:
        """Tell whether an origin signed it."""
        return compare_digest(self._tag(origin, data), signature)

    def _tag(self, origin: str, data: bytes) -> bytes:
        key = self._keys.get(origin)
        if key is None:
            key = self._keys[origin] = blake2b(origin.encode(), digest_size=64).digest()
        return blake2b(data, key=key, digest_size=SIGNATURE_BYTES).digest()


def public_of(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return _pair(private)[0]


def write_private_key(path: str | Path) -> bytes:
    """Make a private key, write it to a new file that only its owner may read, and return it."""
    path = Path(path)
    private = os.urandom(PRIVATE_BYTES)
    # Written apart, with mode 0600, and linked: it is there whole or not at all, and replaces none.
    try:
        file, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(
            f"cannot write a private key to {path}: {error.strerror}; name a folder that is there "
            "and may be written to"
        ) from error
    try:
        with os.fdopen(file, "w", encoding="ascii") as stream:
            stream.write(f"{_FIRST_LINE}{_VERSION}\n{private.hex()}\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.link(draft, path)
    except FileExistsError as error:
        raise InputError(
            f"{path} is there already, and a private key is never written over; read it, or move "
            "it away"
        ) from error
    finally:
        Path(draft).unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return private


def read_private_key(path: str | Path) -> bytes:
    """Read a private key from its file; refuse one that others than its owner may read."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            text = stream.read(1000)
    except OSError as error:
        raise InputError(f"cannot read the private key {path}: {error.strerror}") from error
    if mode & 0o077:
        raise InputError(
            f"others may use the private key {path} (mode {mode:04o}); run: chmod 600 {path}"
        )
    return _parsed(text, path)


def _parsed(text: bytes, path: Path) -> bytes:
    lines = text.decode("ascii", "replace").splitlines()
    if len(lines) != 2 or not lines[0].startswith(_FIRST_LINE):
        raise StateError(
            f"{path} is no private key; expected two lines, of which the first is "
            f'"{_FIRST_LINE}{_VERSION}"'
        )
    version = lines[0].removeprefix(_FIRST_LINE)
    if version != _VERSION:
        raise StateError(
            f"the private key {path} has version {version[:20]!r}, and {_VERSION!r} is known here; "
            "use the coopbandits that wrote it, or a newer one"
        )
    try:
        private = bytes.fromhex(lines[1])
    except ValueError:
        private = b""
    if len(lines[1]) != 2 * PRIVATE_BYTES or len(private) != PRIVATE_BYTES:
        raise StateError(
            f"the private key {path} is damaged; expected {2 * PRIVATE_BYTES} hexadecimal digits "
            f"in the second line, got {len(lines[1])} characters"
        )
    return private


def _pair(private: bytes) -> tuple[bytes, bytes]:
    if len(private) != PRIVATE_BYTES:
        raise InputError(f"a private key has {PRIVATE_BYTES} bytes, got {len(private)}")
    public, secret = bindings.crypto_sign_seed_keypair(bytes(private))
    return public, secret
