"""Real installs of a tiny project, with real pip: cut off, continued, updated, without network."""

import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial

import psutil
import pytest

PYPROJECT = """
[build-system]
requires = []
build-backend = "tiny_backend"
backend-path = ["."]

[project]
name = "tiny"
version = "{version}"

[project.optional-dependencies]
lab = ["{dependency}"]
dev = ["{dependency}"]
"""

# A build backend of twenty lines, so that nothing is taken from a network.
BACKEND = """
import pathlib, time, zipfile

def build_editable(folder, config=None, metadata=None):
    pause = pathlib.Path("pause")
    if pause.exists():
        pathlib.Path("reached").touch()
        time.sleep(float(pause.read_text()))
    version = pathlib.Path("version").read_text()
    dependency = pathlib.Path("dependency").read_text()
    extras = "".join(
        f"Provides-Extra: {extra}\\nRequires-Dist: {dependency}; extra == '{extra}'\\n"
        for extra in ("lab", "dev")
    )
    info = f"tiny-{version}.dist-info"
    name = f"tiny-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("tiny.pth", str(pathlib.Path.cwd()))
        head = f"Metadata-Version: 2.1\\nName: tiny\\nVersion: {version}\\n"
        wheel.writestr(f"{info}/METADATA", head + extras)
        tags = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr(f"{info}/WHEEL", tags)
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""

# The set-up itself on another root, with a smaller group of installers and another torch index.
RUN = """
import sys
sys.path.insert(0, {tools!r})
from environment import checks, prepare, torch_source
prepare.INSTALLER, prepare.SHOW_BYTES = ("pip",), ()
checks.ROOM = dict(cpu=0, default=0)
request = prepare.Request
prepare.Request = lambda **given: request(
    **{{**given, "root": prepare.Path({root!r}), "index": {index!r}}}
)
sys.exit(prepare.main(["{extra}"]))
"""


class Tiny:
    """A tiny course that is set up by the real tools, from wheels on this disk alone."""

    def __init__(self, tools, root):
        self.tools, self.root, self.venv = str(tools), root, root / ".venv"
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("PIP_")
        }
        self.environment |= {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": (root / "wheels").as_uri(),
            "PIP_NO_CACHE_DIR": "1",
            "PIP_RETRIES": "0",
            "TORCH": "default",
            "MODELS": "none",
            "PYTHON": "",
        }
        (root / "wheels").mkdir(parents=True)
        (root / "tiny_backend.py").write_text(BACKEND)
        pip = subprocess.run(
            [sys.executable, "-c", "import ensurepip; print(ensurepip.version())"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        (root / "constraints.txt").write_text(f"pip=={pip}\nleaf==1.3\ntorch==2.13.0\n")
        self.wheel("leaf", "1.3", root / "wheels")
        self.version("1.0", "leaf")

    def version(self, version, dependency):
        (self.root / "version").write_text(version)
        (self.root / "dependency").write_text(dependency)
        text = PYPROJECT.format(version=version, dependency=dependency)
        (self.root / "pyproject.toml").write_text(text)

    @staticmethod
    def wheel(name, version, folder):
        info = f"{name}-{version}.dist-info"
        file = folder / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as wheel:
            wheel.writestr(f"{name}.py", f"version = {version!r}\n")
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            )
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", "")
        return file

    def command(self, extra="lab", index="http://127.0.0.1:9"):
        code = RUN.format(tools=self.tools, root=str(self.root), index=index, extra=extra)
        return [sys.executable, "-c", code]

    def run(self, extra="lab", index="http://127.0.0.1:9", **environment):
        return subprocess.run(
            self.command(extra, index),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def start_and_wait_until_it_installs(self):
        (self.root / "pause").write_text("60")
        process = subprocess.Popen(
            self.command(),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        end = time.monotonic() + 60
        while not (self.root / "reached").exists():
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.05)
        return process

    def has(self, statement):
        return subprocess.run(
            [self.venv / "bin" / "python", "-c", statement], capture_output=True, text=True
        ).stdout.strip()


@pytest.fixture
def tiny(root, tmp_path):
    return Tiny(root / "tools", tmp_path / "a course")


def fault(done) -> str:
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_second_run_changes_nothing_and_a_changed_file_is_installed(tiny):
    done = tiny.run()
    assert done.returncode == 0, done.stderr
    assert tiny.has("import leaf; print(leaf.version)") == "1.3"
    stamped = (tiny.venv / "course-stamp.json").stat().st_mtime_ns

    done = tiny.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tiny.venv / "course-stamp.json").stat().st_mtime_ns == stamped

    (tiny.venv / "mine").touch()
    tiny.wheel("twig", "2.3", tiny.root / "wheels")
    tiny.version("1.1", "twig")
    done = tiny.run("dev")
    assert done.returncode == 0, done.stderr
    assert "bringing .venv up to date" in done.stdout
    assert tiny.has("import twig; print(twig.version)") == "2.3"
    assert (tiny.venv / "mine").exists()
    assert json.loads((tiny.venv / "course-stamp.json").read_text())["extra"] == "dev"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_install_that_was_stopped_says_one_line_and_the_next_run_ends_it(tiny, how):
    process = tiny.start_and_wait_until_it_installs()
    process.send_signal(how)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint.strip() == "Stopped. Run the same command again: what is downloaded is kept."
    (tiny.root / "pause").unlink()
    done = tiny.run()
    assert done.returncode == 0, done.stderr
    assert "building it anew" in done.stdout
    assert tiny.has("import leaf; print(leaf.version)") == "1.3"


def test_an_install_that_was_killed_keeps_the_lock_until_its_pip_is_gone(tiny):
    process = tiny.start_and_wait_until_it_installs()
    orphans = psutil.Process(process.pid).children(recursive=True)
    assert orphans
    process.kill()
    process.communicate()
    second = subprocess.Popen(
        tiny.command(), env=tiny.environment, stdout=subprocess.PIPE, text=True
    )
    assert "waiting for it to end" in second.stdout.readline()
    assert second.poll() is None
    (tiny.root / "pause").unlink()
    for orphan in orphans:
        with contextlib.suppress(psutil.NoSuchProcess):
            orphan.kill()
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "building it anew" in said


def test_no_network_is_one_line_and_the_next_run_ends_the_install(tiny):
    closed = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_NO_INDEX": "", "PIP_RETRIES": "1"}
    done = tiny.run(**closed, PIP_FIND_LINKS="")
    assert "The package index does not answer" in fault(done)
    assert tiny.run().returncode == 0


def test_a_package_that_nobody_has_is_named_with_this_machine(tiny):
    tiny.version("1.0", "twig")
    said = fault(tiny.run())
    assert "no build of twig" in said and "make lab PYTHON=" in said


def test_an_environment_whose_python_is_gone_is_built_anew(tiny):
    assert tiny.run().returncode == 0
    (tiny.venv / "bin" / "python").unlink()
    assert tiny.run().returncode == 0
    assert tiny.has("import leaf; print(leaf.version)") == "1.3"


def test_a_folder_that_is_no_environment_is_not_deleted(tiny):
    tiny.venv.mkdir()
    (tiny.venv / "thesis.txt").write_text("mine")
    assert "Move it away" in fault(tiny.run())
    assert (tiny.venv / "thesis.txt").read_text() == "mine"


def test_the_cpu_build_comes_from_its_own_index(tiny, tmp_path):
    site = tmp_path / "whl"
    (site / "torch").mkdir(parents=True)
    wheel = tiny.wheel("torch", "2.13.0+cpu", site / "torch")
    (site / "torch" / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Keep the tests' output clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    index = f"http://127.0.0.1:{server.server_port}/whl"
    tiny.version("1.0", "torch")
    try:
        done = tiny.run(index=index, TORCH="cpu", PIP_NO_INDEX="", PIP_INDEX_URL=f"{index}/none")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert tiny.has("import torch; print(torch.version)") == "2.13.0+cpu"
    assert json.loads((tiny.venv / "course-stamp.json").read_text())["torch"] == "cpu"


def test_weights_that_cannot_be_had_stop_nothing(tiny):
    done = tiny.run(MODELS="")
    assert done.returncode == 0
    assert "make models" in done.stdout
    again = tiny.run(MODELS="")
    assert "make models" not in again.stdout


def test_a_python_without_venv_is_one_line_and_writes_nothing(tiny):
    command = tiny.command()
    command[2] = "import sys; sys.modules['ensurepip'] = None\n" + command[2].replace(
        "prepare.INSTALLER",
        "checks.check_venv.__defaults__ = (lambda name: None,)\nprepare.INSTALLER",
    )
    done = subprocess.run(command, env=tiny.environment, capture_output=True, text=True)
    assert "lacks its venv module" in fault(done)
    assert not tiny.venv.exists()


def test_a_disk_that_runs_full_is_one_line(tiny):
    """A file system of 3 MB is full before Python's own pip is unpacked."""
    if shutil.which("mount") is None or os.geteuid():
        pytest.skip("mounting a small file system needs root")
    tiny.venv.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", tiny.venv])
    if mounted.returncode:
        pytest.skip("this machine does not allow mounting a small file system")
    try:
        assert "disk is full" in fault(tiny.run())
    finally:
        subprocess.run(["umount", tiny.venv], check=True)
    assert tiny.run().returncode == 0
