"""pyproject.toml, constraints.txt and environment.yml say the same."""

import itertools

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import setup_environment
from environment.prepare import INSTALLER

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SYSTEMS = {"linux": ("Linux", "posix"), "darwin": ("Darwin", "posix"), "win32": ("Windows", "nt")}

# Versions that the hosted notebooks of 2026 bring, which no install may touch.
HOSTED = [
    {
        "python": python,
        "torch": "2.11.0",
        "numpy": numpy,
        "matplotlib": "3.10.0",
        "ipywidgets": "7.7.1",
        "ipython": "7.34.0",
        "ipykernel": "6.17.1",
        "anywidget": "0.9.21",
        "transformers": "5.15.0",
        "tokenizers": "0.22.2",
    }
    for python, numpy in (("3.13", "2.1.3"), ("3.12", "2.0.2"))
]


def pins_for(root, python: str, system: str) -> dict[str, str]:
    platform, os_name = SYSTEMS[system]
    here = {
        "python_version": python,
        "python_full_version": f"{python}.7",
        "sys_platform": system,
        "platform_system": platform,
        "os_name": os_name,
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
    }
    pins = {}
    for line in (root / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(here):
            name = canonicalize_name(pin.name)
            assert name not in pins, f"{name} is pinned twice for Python {python} on {system}"
            (specifier,) = pin.specifier
            assert specifier.operator == "=="
            pins[name] = specifier.version
    return pins


def requirements(project) -> list[Requirement]:
    groups = [project["project"]["dependencies"], project["dependency-groups"]["installer"]]
    groups += project["project"]["optional-dependencies"].values()
    found = [Requirement(line) for group in groups for line in group]
    return [one for one in found if one.name != project["project"]["name"]]


@pytest.mark.parametrize(("python", "system"), list(itertools.product(PYTHONS, SYSTEMS)))
def test_every_dependency_is_pinned_within_its_bounds(root, project, python, system):
    pins = pins_for(root, python, system)
    for requirement in requirements(project):
        if requirement.marker and not requirement.marker.evaluate({"python_version": python}):
            continue
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin, f"{requirement.name} has no pin for Python {python} on {system}"
        assert requirement.specifier.contains(pin), f"{requirement} does not hold {pin}"


def test_the_pinned_torch_is_the_one_that_pyproject_names(root, project):
    (line,) = project["tool"]["uv"]["constraint-dependencies"]
    assert line in (root / "constraints.txt").read_text().splitlines()


@pytest.mark.parametrize("hosted", HOSTED, ids=lambda hosted: hosted["python"])
def test_a_hosted_notebook_keeps_its_own_versions(project, hosted):
    assert hosted["python"] in SpecifierSet(project["project"]["requires-python"])
    named = {one.name: one for one in requirements(project)}
    for name, version in hosted.items():
        if name != "python":
            assert named[name].specifier.contains(version), f"{named[name]} refuses {version}"


def test_the_range_of_python_is_the_same_everywhere(root, project):
    wanted = SpecifierSet(project["project"]["requires-python"])
    below = f"3.{setup_environment.OLDEST[1] - 1}"
    above = f"3.{setup_environment.NEWEST[1] + 1}"
    assert all(python in wanted for python in PYTHONS)
    assert below not in wanted and above not in wanted
    assert [setup_environment.suits((3, minor)) for minor in range(9, 15)] == [
        f"3.{minor}" in wanted for minor in range(9, 15)
    ]
    assert project["tool"]["ruff"]["target-version"] == "py310"
    assert "--python-version 3.10" in (root / "Makefile").read_text()
    assert setup_environment.NEEDED in (root / "README.md").read_text()


def test_conda_installs_the_same_pinned_course(root, project):
    conda = yaml.safe_load((root / "environment.yml").read_text())
    python, pip, section = conda["dependencies"]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(
        project["project"]["requires-python"]
    )
    assert pip == "pip"
    assert section == {"pip": ["-c constraints.txt", "-e .[lab]"]}
    assert conda["name"] == project["project"]["name"]


def test_the_set_up_installs_the_group_that_pyproject_names(project):
    named = [Requirement(line).name for line in project["dependency-groups"]["installer"]]
    assert tuple(named) == INSTALLER


def test_the_constraints_name_no_place_to_download_from(root):
    text = (root / "constraints.txt").read_text()
    assert "://" not in text
    assert "+cpu" not in text
