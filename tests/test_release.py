"""What is released: one version, and distributions that hold all that is needed."""

import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import placeto

ROOT = Path(__file__).parent.parent
TOP = ("placeto", "tests", "docs", "benchmarks", ".ci")
BUILT = ("*.py[cod]", "*.nb[ci]", "__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel made of a source distribution of the tree, and that distribution."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for path in ROOT.iterdir():
        if path.is_dir() and path.name in TOP:
            shutil.copytree(path, source / path.name, ignore=shutil.ignore_patterns(*BUILT))
        elif path.is_file() and path.name != ".git":
            shutil.copy(path, source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(built[0]) as archive:
        yield archive


def package_files():
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "placeto").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_is_the_package_with_its_data_and_nothing_else(wheel):
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == package_files()
    assert {
        "placeto/py.typed",
        "placeto/data/graphs/inception_v3.json.gz",
        "placeto/data/policies/placeto.safetensors",
        "placeto/presets/k80x2.yaml",
    } <= files


def test_wheel_says_what_it_is(wheel):
    folder = f"placeto-{placeto.__version__}.dist-info"
    metadata = Parser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert metadata["Name"] == "placeto"
    assert metadata["Version"] == placeto.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
    assert "placeto = placeto.cli:main" in wheel.read(f"{folder}/entry_points.txt").decode()


def test_version_stands_in_one_place():
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search(r"^version\s*=\s*\"", project, re.MULTILINE) is None
    assert 'attr = "placeto.__version__"' in project


def test_changelog_begins_with_this_version():
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == placeto.__version__


def test_what_is_pinned_runs_on_every_python_that_the_package_does():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    names = [Requirement(line).name for line in lines if line and line[0] != "#"]
    asked = {name: metadata(name).get("Requires-Python") for name in names if installed(name)}
    assert len(asked) > 100
    too_new = {n: a for n, a in asked.items() if a and not SpecifierSet(a).contains("3.11.0")}
    assert too_new == {}


def installed(name: str) -> bool:
    try:
        return bool(metadata(name))
    except PackageNotFoundError:
        return False
