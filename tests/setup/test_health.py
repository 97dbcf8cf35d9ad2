"""doctor() finds each fault, names its remedy, and never raises."""

import importlib.metadata
import json
import re
import socket
import time
from collections import namedtuple

import pytest

import course_lib
from course_lib import health

Usage = namedtuple("Usage", "free")
Memory = namedtuple("Memory", "available total")


def versions(**known):
    def version_of(name):
        if name not in known:
            raise importlib.metadata.PackageNotFoundError(name)
        return known[name]

    return version_of


def only(findings):
    (finding,) = findings
    return finding


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 14, 0)])
def test_a_python_out_of_range_is_a_fault(version):
    python, _ = health.check_python(version)
    assert "3.10 to 3.13" in python.remedy
    assert health.check_python((3, 10, 2))[0].remedy is None


def test_a_package_too_old_or_missing_names_the_command():
    needs = ["anywidget>=0.9.21", "numpy>=1.26", "ruff>=0.8; extra == 'dev'", "torch>=2.5"]
    found = health.check_packages(needs, versions(anywidget="0.9.3", torch="2.13.0+cpu"))
    assert [one.name for one in found] == ["anywidget", "numpy", "torch"]
    assert found[0].remedy == "needs >=0.9.21: pip install 'anywidget>=0.9.21'"
    assert found[1].value == "not installed" and "pip install 'numpy>=1.26'" in found[1].remedy
    assert found[2].remedy is None


def test_every_package_of_the_lab_is_reported_here():
    names = {one.name for one in health.check_packages()}
    assert {"torch", "numpy", "ipywidgets", "anywidget", "jupyterlab", "transformers"} <= names
    assert "ruff" not in names


def test_little_memory_and_little_disk_are_faults(tmp_path):
    memory = only(health.check_memory(lambda: Memory(7 * 10**8, 8 * 10**9)))
    assert memory.value == "0.7 of 8.0 GB free" and memory.remedy
    assert only(health.check_memory(lambda: Memory(3 * 10**9, 8 * 10**9))).remedy is None
    assert only(health.check_disk(tmp_path, lambda _: Usage(2 * 10**8))).remedy
    assert only(health.check_disk(tmp_path, lambda _: Usage(7 * 10**8))).remedy is None


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path):
    good = only(health.check_learner_file(tmp_path))
    assert good.remedy is None and str(tmp_path / "my_transformer.py") in good.value
    assert not list(tmp_path.iterdir())
    bad = only(health.check_learner_file(tmp_path / "missing"))
    assert "COURSE_FOLDER" in bad.remedy


def test_weights_that_are_not_there_name_the_target(tmp_path):
    assert "make models" in only(health.check_weights(tmp_path)).remedy
    file = tmp_path / "minilm" / "model.safetensors"
    file.parent.mkdir()
    file.write_bytes(bytes(3 * 10**6))
    found = only(health.check_weights(tmp_path))
    assert found.remedy is None and found.value.startswith("3 MB")


def front_end(prefix, **extensions):
    names = {"ipywidgets": "@jupyter-widgets/jupyterlab-manager", "anywidget": "anywidget"}
    for package, version in extensions.items():
        folder = prefix / "share/jupyter/labextensions" / names[package]
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"version": version}))


def check_widgets(prefix, **known):
    return health.check_widgets(prefix, versions(jupyterlab="4.6.6", **known), modules={})


def test_a_front_end_that_fits_is_no_fault(tmp_path):
    front_end(tmp_path, ipywidgets="5.0.16", anywidget="0.11.0")
    found = check_widgets(tmp_path, ipywidgets="8.1.9", anywidget="0.11.0")
    assert [one.remedy for one in found] == [None, None]


def test_a_front_end_missing_or_of_another_version_is_a_fault(tmp_path):
    front_end(tmp_path, ipywidgets="3.1.0")
    found = check_widgets(tmp_path, ipywidgets="8.1.9", anywidget="0.11.0")
    assert "3.1.0" in found[0].value and "ipywidgets" in found[0].remedy
    assert found[1].value == "missing" and "anywidget" in found[1].remedy


def test_colab_and_other_hosts_bring_a_front_end_of_their_own(tmp_path):
    hosted = health.check_widgets(tmp_path, versions(), modules={"google.colab": object()})
    assert "Colab" in only(hosted).value
    assert only(health.check_widgets(tmp_path, versions(), modules={})).remedy is None


def test_a_network_that_hangs_or_refuses_is_no_fault_and_costs_little_time():
    def hang(address, timeout):
        if address[0] == "slow.invalid":
            time.sleep(2.0)
        raise OSError("refused")

    hosts = {"one": "slow.invalid", "two": "closed.invalid"}
    started = time.monotonic()
    found = health.check_network(hosts, connect=hang, seconds=0.2)
    assert time.monotonic() - started < 1.5
    assert all("no answer" in one.value and one.remedy is None for one in found)


def test_a_host_that_answers_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def connect(_, timeout):
            return socket.create_connection(server.getsockname(), timeout=timeout)

        found = health.check_network({"one": "here.invalid"}, connect=connect)
    assert only(found).value == "here.invalid answers"


def test_a_check_that_breaks_is_a_fault_and_the_rest_goes_on(tmp_path):
    def broken():
        raise ImportError("a library that does not load")

    found = health.examine([("torch", broken), ("disk", lambda: health.check_disk(tmp_path))])
    assert found[0].value == "ImportError: a library that does not load"
    assert found[0].remedy and found[1].name == "disk"


def test_each_fault_is_one_line_with_its_remedy():
    text = health.report(
        [health.Finding("disk", "0.1 GB", "free some"), health.Finding("memory", "7 GB")]
    )
    assert text.splitlines()[-1] == "FAULT: disk: 0.1 GB. Remedy: free some."
    assert "No fault found" not in text
    assert health.report([health.Finding("memory", "7 GB")]).endswith("No fault found.")


def test_doctor_prints_the_whole_report_here(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    started = time.monotonic()
    course_lib.doctor()
    assert time.monotonic() - started < 15
    said = capsys.readouterr().out
    for word in ("Python", "torch threads", "CPU", "memory", str(tmp_path), "network", "anywidget"):
        assert word in said
    faults = re.findall(r"^FAULT: (.*?): .* Remedy: .+", said, re.MULTILINE)
    assert faults == ["MiniLM's weights"]
