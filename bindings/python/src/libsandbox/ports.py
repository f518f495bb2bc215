"""Programs that listen in a box."""

from __future__ import annotations

import os
import socket

from . import _check
from ._calls import call
from ._documents import Share
from ._library import library
from ._part import BoxPart


class BoxPorts(BoxPart):
    """How the TCP ports of a box are reached, whether they are published or not."""

    def connect(self, port: int) -> socket.socket:
        """A socket that is connected to a program in the box. Its owner closes it; it ends with the box, too.

        It is of the family AF_UNIX: the library passes its bytes on. Each direction ends for itself.
        Raises NetworkError (nothing listens there), NotFoundError and InvalidStateError (the box does not run).
        """
        number = _check.integer("port", port)
        with self._second() as pointer:
            return socket.socket(fileno=call(lambda: library().integer("box_connect", pointer, number), os.close))

    def share(self, port: int, expires_in: int | None = None) -> Share:
        """Makes a link to a port of a box of a daemon, for people without a key.

        expires_in is how many seconds it lasts, at most 30 days: an hour. Raises UnsupportedError (the box is of
        this process), UnavailableError (no browser can reach the daemon).
        """
        number = _check.integer("port", port)
        seconds = 0 if expires_in is None else _check.integer("expires_in", expires_in, low=1)
        return Share.parse(self._document("box_share", number, seconds))
