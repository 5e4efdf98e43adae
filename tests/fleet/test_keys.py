"""Keys sign for one origin and verify for all; private keys stay with their owner."""

import os
import stat

import pytest

from coopbandits.errors import InputError, StateError
from coopbandits.fleet import keys
from coopbandits.fleet.keys import Ed25519Keys, HashKeys

PRIVATE = {origin: bytes([i]) * 32 for i, origin in enumerate(["Bern", "Zürich", "日本" * 40])}
PUBLIC = {origin: keys.public_of(private) for origin, private in PRIVATE.items()}
MADE = {
    "Ed25519": lambda origin: Ed25519Keys(PRIVATE[origin], PUBLIC),
    "hash": HashKeys,
}


@pytest.fixture(params=MADE)
def make(request):
    return MADE[request.param]


@pytest.mark.parametrize("data", [b"", b"a record", bytes(300_000)], ids=len)
def test_what_one_signed_all_can_verify(make, data):
    for origin in PRIVATE:
        signature = make(origin).sign(data)
        assert isinstance(signature, bytes)
        assert len(signature) == 64
        assert signature == make(origin).sign(data)
        for other in PRIVATE:
            for whom in PRIVATE:
                assert make(other).verify(whom, data, signature) == (whom == origin)


def test_a_signature_holds_for_the_same_bytes_only(make):
    signature = make("Bern").sign(b"a record")
    verify = make("Zürich").verify
    for place in range(8):
        changed = bytearray(b"a record")
        changed[place] ^= 1 << place
        assert not verify("Bern", bytes(changed), signature)
    for bit in range(512):
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        assert not verify("Bern", b"a record", bytes(changed))
    for wrong in (b"", signature[:-1], signature + b"\0", bytes(64)):
        assert not verify("Bern", b"a record", wrong)
    # bytes moved from the data to the signature, or back
    assert not verify("Bern", b" record", signature + b"a")


def test_nobody_verifies_whom_no_key_is_known_of():
    signature = Ed25519Keys(bytes(32), {}).sign(b"a record")
    assert not Ed25519Keys(bytes(32), PUBLIC).verify("nobody", b"a record", signature)


@pytest.mark.parametrize(
    ("private", "public", "message", "signature"),
    [  # RFC 8032, 7.1, tests 1 and 2
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e"
            "39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f"
            "3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ],
)
def test_signatures_are_those_of_the_rfc(private, public, message, signature):
    made = Ed25519Keys(bytes.fromhex(private), {})
    assert made.public == bytes.fromhex(public)
    assert made.sign(bytes.fromhex(message)) == bytes.fromhex(signature)


def test_keys_of_another_size_are_refused():
    for private in (b"", bytes(31), bytes(64)):
        with pytest.raises(InputError, match="a private key has 32 bytes, got"):
            Ed25519Keys(private, {})
    with pytest.raises(InputError, match="public key of 'Bern' has 31 bytes; expected 32"):
        Ed25519Keys(bytes(32), {"Bern": bytes(31)})


def test_a_private_key_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "node.key"
    old = os.umask(0)
    try:
        private = keys.write_private_key(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys.read_private_key(str(path)) == private
    assert private != keys.write_private_key(tmp_path / "other.key")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["node.key", "other.key"]


def test_a_private_key_is_never_written_over(tmp_path):
    path = tmp_path / "node.key"
    private = keys.write_private_key(path)
    with pytest.raises(InputError, match="is there already"):
        keys.write_private_key(path)
    assert keys.read_private_key(path) == private
    dangling = tmp_path / "link.key"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is there already"):
        keys.write_private_key(dangling)
    with pytest.raises(InputError, match=r"cannot write a private key.*No such file"):
        keys.write_private_key(tmp_path / "no" / "node.key")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.key", "node.key"]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o610, 0o777])
def test_a_private_key_that_others_may_use_is_refused(tmp_path, mode):
    path = tmp_path / "node.key"
    private = keys.write_private_key(path)
    path.chmod(mode)
    with pytest.raises(InputError, match=f"mode {mode:04o}.*run: chmod 600 {path}"):
        keys.read_private_key(path)
    path.chmod(0o400)
    assert keys.read_private_key(path) == private


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "is no private key"),
        (b"\xff\xfe" * 40, "is no private key"),
        (b"coopbandits ed25519 private key 1\n", "is no private key"),
        (b"coopbandits ed25519 private key 1\n" + b"00" * 32 + b"\nmore\n", "is no private key"),
        (b"ssh-ed25519 AAAA\nBBBB\n", "is no private key"),
        (b"coopbandits ed25519 private key 2\n" + b"00" * 32, "has version '2'.*or a newer one"),
        (b"coopbandits ed25519 private key 1\n" + b"00" * 31, "is damaged.*got 62 characters"),
        (b"coopbandits ed25519 private key 1\n" + b"00" * 33, "is damaged.*got 66 characters"),
        (b"coopbandits ed25519 private key 1\n" + b"0g" * 32, "is damaged"),
        (b"coopbandits ed25519 private key 1\n" + b"00 " * 21 + b"0", "is damaged"),
    ],
)
def test_what_is_no_private_key_is_refused(tmp_path, text, complaint):
    path = tmp_path / "node.key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(StateError, match=complaint):
        keys.read_private_key(path)


def test_a_private_key_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the private key .*node\.key: No such file"):
        keys.read_private_key(tmp_path / "node.key")
