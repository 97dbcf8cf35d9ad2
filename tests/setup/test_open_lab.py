"""JupyterLab opens on lesson 00, on this machine alone, on a free port."""

import os
import socket

import pytest

import open_lab


@pytest.fixture
def launch(monkeypatch, tmp_path):
    """Run main, and return what it would have become: (command, environment, folder)."""
    became = []

    class Became(BaseException):
        """execv does not return."""

    def execv(program, command):
        became.append((command, dict(os.environ), os.getcwd()))
        raise Became

    def run(**environment):
        (tmp_path / open_lab.LESSON).touch()
        monkeypatch.setattr(open_lab, "LESSONS", tmp_path)
        monkeypatch.setattr(open_lab.os, "execv", execv)
        monkeypatch.chdir(tmp_path)
        for name in ("PORT", "BROWSER_OPEN", "JUPYTER_TOKEN"):
            monkeypatch.setenv(name, environment.get(name, ""))
            if not environment.get(name):
                monkeypatch.delenv(name)
        with pytest.raises(Became):
            open_lab.main()
        return became.pop()

    return run


@pytest.fixture
def busy():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_it_listens_on_this_machine_alone_with_a_token(launch, capsys, busy):
    command, environment, _ = launch(PORT=str(busy))
    assert "--ip=127.0.0.1" in command
    assert len(environment["JUPYTER_TOKEN"]) == 48
    assert environment["JUPYTER_TOKEN"] not in " ".join(command)
    shown = capsys.readouterr().out
    assert f"/lab/tree/{open_lab.LESSON}?token={environment['JUPYTER_TOKEN']}" in shown


def test_two_starts_have_two_tokens(launch):
    assert launch()[1]["JUPYTER_TOKEN"] != launch()[1]["JUPYTER_TOKEN"]


def test_a_port_in_use_is_said_and_the_next_free_one_taken(launch, capsys, busy):
    command, _, _ = launch(PORT=str(busy))
    (port,) = [int(part[7:]) for part in command if part.startswith("--port=")]
    assert port > busy
    assert open_lab.is_free(port) and not open_lab.is_free(busy)
    assert f"Port {busy} is in use: JupyterLab takes {port}." in capsys.readouterr().out


def test_no_free_port_is_one_line_with_the_remedy(monkeypatch):
    monkeypatch.setattr(open_lab, "is_free", lambda port: False)
    with pytest.raises(SystemExit, match=r"8888 to 8937 are all in use.*PORT=9000"):
        open_lab.free_port(8888)


@pytest.mark.parametrize("text", ["0", "70000", "-1", "many", "8888x"])
def test_a_port_that_is_none_is_refused(text):
    with pytest.raises(SystemExit, match=f"PORT={text} is no port"):
        open_lab.read_port(text)


def test_the_browser_opens_unless_told_not_to(launch):
    assert "--no-browser" not in launch()[0]
    assert "--no-browser" in launch(BROWSER_OPEN="no")[0]


def test_a_missing_lesson_is_one_line_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(open_lab, "LESSONS", tmp_path)
    with pytest.raises(SystemExit, match="git checkout notebooks"):
        open_lab.main()
