"""Tell systemd, if it started the node, that it is ready, stops, or lives (sd_notify)."""

import os
import socket
from collections.abc import Mapping


class ServiceManager:
    """Where NOTIFY_SOCKET leads; nowhere if it is not set.

    Attributes:
        watchdog: Seconds within which the manager wants a sign of life; None for never.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        wanted = environment.get("WATCHDOG_USEC", "")
        meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.watchdog = int(wanted) / 1e6 if wanted.isdigit() and meant else None

    def ready(self, status: str) -> None:
        """Say that the node takes requests."""
        self._tell(f"READY=1\nSTATUS={status}\nMAINPID={os.getpid()}")

    def stopping(self) -> None:
        """Say that the node stops."""
        self._tell("STOPPING=1")

    def alive(self) -> None:
        """Say that the node lives."""
        self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address.startswith(("/", "@")):
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            try:
                to.connect(address)
                to.sendall(text.encode())
            except OSError:
                return  # nobody listens: the node runs without
