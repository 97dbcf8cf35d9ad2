"""What is left to do, where torch comes from, and what must be true before anything is written."""

import dataclasses
import errno
import http.server
import threading
import time
from collections import namedtuple

import pytest

from environment import checks, prepare, stamp, torch_source
from environment.problem import SetupProblem

Usage = namedtuple("Usage", "total used free")
FOUND = stamp.Stamp(root="/a", base="/usr/bin/python3.11", extra="lab", torch="cpu", inputs="x")


def decide(found=FOUND, torch_asked="auto", python_chosen=False, **wanted):
    return stamp.decide(
        found,
        dataclasses.replace(FOUND, **wanted),
        python_chosen=python_chosen,
        torch_asked=torch_asked,
    )


def test_the_same_request_has_nothing_left_to_do():
    assert decide() == "ready"


def test_no_stamp_means_building_anew():
    assert decide(found=None) == "rebuild"


def test_a_moved_folder_is_built_anew():
    assert decide(root="/b") == "rebuild"


def test_changed_pins_are_installed_over_the_old_ones():
    assert decide(inputs="y") == "update"


def test_the_development_extras_hold_those_of_the_lab():
    development = dataclasses.replace(FOUND, extra="dev")
    assert decide(found=development, extra="lab") == "ready"
    assert decide(extra="dev") == "update"
    assert stamp.wider("dev", "lab") == stamp.wider("lab", "dev") == "dev"


def test_another_python_counts_only_if_it_was_chosen():
    assert decide(base="/usr/bin/python3.12") == "ready"
    assert decide(base="/usr/bin/python3.12", python_chosen=True) == "rebuild"


def test_another_torch_counts_only_if_it_was_asked_for():
    assert decide(torch_asked="cpu") == "ready"
    assert decide(torch_asked="default") == "rebuild"


def test_a_stamp_that_was_cut_off_counts_as_none(tmp_path):
    stamp.write(tmp_path, FOUND)
    assert stamp.read(tmp_path) == FOUND
    whole = (tmp_path / "course-stamp.json").read_text()
    (tmp_path / "course-stamp.json").write_text(whole[:11])
    assert stamp.read(tmp_path) is None
    stamp.remove(tmp_path)
    assert stamp.read(tmp_path) is None


@pytest.mark.parametrize("name", stamp.INPUTS)
def test_a_change_of_either_file_changes_the_digest(tmp_path, name):
    for file in stamp.INPUTS:
        (tmp_path / file).write_text("one")
    before = stamp.digest(tmp_path)
    (tmp_path / name).write_text("two")
    assert stamp.digest(tmp_path) != before


@pytest.fixture
def torch_index():
    """A torch index on this machine that answers, slowly if told so."""

    class Handler(http.server.BaseHTTPRequestHandler):
        wait = 0.0

        def do_GET(self):
            time.sleep(self.wait)
            self.send_response(200 if self.path == "/whl/torch/" else 404)
            self.end_headers()

        def log_message(self, *_):
            """Keep the tests' output clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", Handler
    server.shutdown()
    server.server_close()


def test_an_index_that_answers_gives_the_cpu_build(torch_index, capsys):
    address, _ = torch_index
    index = f"{address}/whl"
    assert torch_source.choose("auto", index=index, platform="linux", nvidia=lambda: False) == "cpu"
    assert index in capsys.readouterr().out


@pytest.mark.parametrize("fault", ["closed", "slow", "not found", "no index"])
def test_an_index_that_does_not_answer_is_said_and_passed_over(torch_index, capsys, fault):
    address, handler = torch_index
    handler.wait = 3.0 if fault == "slow" else 0.0
    index = {
        "closed": "http://127.0.0.1:9",
        "slow": f"{address}/whl",
        "not found": f"{address}/other",
        "no index": "http://name.invalid",
    }[fault]
    started = time.monotonic()
    chosen = torch_source.choose(
        "auto",
        index=index,
        platform="linux",
        nvidia=lambda: False,
        probe=lambda address: torch_source.answers(address, seconds=0.5),
    )
    assert chosen == "default"
    assert time.monotonic() - started < 2.5
    said = capsys.readouterr().out
    assert index in said and "3 GB" in said and said.count("\n") == 1


@pytest.mark.parametrize(("platform", "nvidia"), [("linux", True), ("darwin", False)])
def test_a_gpu_or_another_system_takes_the_ordinary_index_unasked(platform, nvidia):
    def probe(_):
        raise AssertionError("asked the network for nothing")

    chosen = torch_source.choose("auto", platform=platform, nvidia=lambda: nvidia, probe=probe)
    assert chosen == "default"


@pytest.mark.parametrize("asked", ["cpu", "default"])
def test_the_switch_forces_either(asked):
    assert torch_source.choose(asked, platform="linux", probe=lambda _: asked != "cpu") == asked


def test_an_unknown_switch_names_the_three(monkeypatch, capsys):
    monkeypatch.setenv("TORCH", "gpu")
    assert prepare.main(["lab"]) == 1
    said = capsys.readouterr().err
    assert "TORCH=gpu" in said and "TORCH=cpu" in said and said.count("\n") == 1


def test_a_missing_venv_module_names_the_package(monkeypatch):
    monkeypatch.setattr(checks.sys, "version_info", namedtuple("V", "major minor")(3, 11))
    with pytest.raises(SetupProblem, match=r"sudo apt install python3\.11-venv"):
        checks.check_venv(find_spec=lambda name: None if name == "ensurepip" else object())
    checks.check_venv(find_spec=lambda name: object())


def test_a_disk_without_room_is_measured_in_the_message(tmp_path):
    def usage(_):
        return Usage(10**11, 0, int(3.7e9))

    with pytest.raises(SetupProblem, match=r"3\.7 GB free, and the course needs about 9 GB"):
        checks.check_room(tmp_path, "default", disk_usage=usage)
    checks.check_room(tmp_path, "cpu", disk_usage=usage)


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    venv = tmp_path / ".venv"
    checks.check_ours(venv)
    venv.mkdir()
    checks.check_ours(venv)
    (venv / "thesis.txt").write_text("mine")
    with pytest.raises(SetupProblem, match="Move it away"):
        checks.check_ours(venv)
    (venv / "pyvenv.cfg").touch()
    checks.check_ours(venv)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/.venv"), "must be allowed"),
        (KeyboardInterrupt(), "Run the same command again"),
        (SetupProblem("One line."), "One line."),
    ],
)
def test_no_fault_of_the_machine_shows_a_traceback(monkeypatch, capsys, error, word):
    def fail(_):
        raise error

    monkeypatch.setattr(prepare, "prepare", fail)
    assert prepare.main(["lab"]) != 0
    said = capsys.readouterr().err.strip()
    assert word in said and "\n" not in said
