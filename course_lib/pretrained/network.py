"""A network that may not be there: asked once, waited for a few seconds, and remembered."""

import http.client
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import certifi

from course_lib.pretrained.cache import WeightsProblem

WAIT = 8.0  # seconds in all for what a lesson asks of a network that may be missing


class NoNetwork(WeightsProblem):
    """A server that gives no sign of life."""


class Patience:
    """Seconds that are left for several questions together.

    >>> Patience(5.0).left() <= 5.0
    True
    """

    def __init__(self, seconds: float = WAIT):
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left, at least one: a server nearby answers in less."""
        return max(1.0, self.end - time.monotonic())


class SignOfLife(threading.Thread):
    """Ask a server for its headers in the background: a name service can hang for ever."""

    def __init__(self, address: str, patience: Patience):
        super().__init__(name="sign of life", daemon=True)
        self.address, self.patience = address, patience
        self.fault = "no answer"
        self.start()

    def run(self):
        request = urllib.request.Request(self.address, method="HEAD")
        try:
            seconds = self.patience.left()
            with urllib.request.urlopen(request, timeout=seconds, context=certificates()):
                self.fault = ""
        except urllib.error.HTTPError as error:
            error.close()
            self.fault = f"it answered {error.code}" if error.code >= 500 else ""
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            self.fault = f"no answer: {getattr(reason, 'strerror', None) or reason}"

    def expect(self) -> None:
        """Wait as long as patience lasts. Errors: NoNetwork, with the reason."""
        self.join(self.patience.left())
        if self.fault:
            raise NoNetwork(self.fault)


def certificates() -> ssl.SSLContext:
    """Trust what the system trusts (or SSL_CERT_FILE names), certifi, and what pip was given."""
    context = ssl.create_default_context()
    named = (os.environ.get("PIP_CERT"), os.environ.get("REQUESTS_CA_BUNDLE"))
    for place in (certifi.where(), *named):
        if place and Path(place).is_file():
            context.load_verify_locations(cafile=place)
    return context
