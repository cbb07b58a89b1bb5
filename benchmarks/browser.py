"""A Chromium, for tests and pictures of pages: `python -m benchmarks.browser` gets one.

If none is installed, Debian's headless shell is unpacked with its libraries into the folder of the
Python environment, without root. Where apt has none, `playwright install` is left to get one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(sys.prefix) / "browser"
LAUNCHER = "chromium"
PACKAGE = "chromium-headless-shell"
NAMES = (PACKAGE, "chromium", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """The path of a Chromium; None if there is none."""
    if named := os.environ.get("CHROMIUM"):
        return named
    own = str(FOLDER / LAUNCHER)
    if installed := next(filter(None, map(shutil.which, (own, *NAMES))), None):
        return installed
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def get_browser() -> str:
    """The path of a Chromium, which is got first if there is none; RuntimeError if it cannot."""
    if found := find_browser():
        return found
    if shutil.which("apt-get") and shutil.which("dpkg"):
        try:
            _unpack()
        except subprocess.CalledProcessError as error:
            print(f"apt has no {PACKAGE}: {error.stderr.strip()}", file=sys.stderr)
    if find_browser() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"])
    if found := find_browser():
        return found
    raise RuntimeError("there is no Chromium; install one, and name it in CHROMIUM")


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium that runs, without a window."""
    from playwright.sync_api import sync_playwright

    path = get_browser()  # which may ask Playwright, and that runs once at a time
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path) as running,
    ):
        yield running


def _unpack() -> None:
    """Debian's packages into `FOLDER`, which appears whole or not at all."""
    work = Path(tempfile.mkdtemp(dir=sys.prefix))
    root, downloads = work / "root", work / "cache/archives"
    options = [
        f"Dir::State={work}/state", "Dir::State::status=/var/lib/dpkg/status",
        f"Dir::Cache={work}/cache", "Debug::NoLocking=true", "Acquire::Retries=3",
        "APT::Sandbox::User=",
    ]  # fmt: skip
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    apt = ["apt-get", "--quiet", "--yes", "--no-install-recommends"]
    apt += [f"--option={option}" for option in options]
    try:
        for folder in (root, work / "state/lists/partial", downloads / "partial"):
            folder.mkdir(parents=True)
        run([*apt, "update"])
        run([*apt, "--download-only", "install", PACKAGE])
        for package in sorted(downloads.glob("*.deb")):
            run(["dpkg", "--extract", str(package), str(root)])
        shutil.rmtree(work / "cache")
        shutil.rmtree(work / "state")
        # It starts the browser with the libraries that came with it.
        folders = {library.parent.relative_to(work) for library in root.rglob("*.so*")}
        libraries = ":".join(sorted(f"$here/{folder}" for folder in folders))
        launcher = work / LAUNCHER
        launcher.write_text(
            "#!/bin/sh\n"
            'here=$(dirname "$(readlink -f "$0")")\n'
            f'export LD_LIBRARY_PATH="{libraries}"\n'
            f'exec "$here/root/usr/lib/chromium/{PACKAGE}" "$@"\n'
        )
        launcher.chmod(0o755)
        work.chmod(0o755)
        work.rename(FOLDER)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        print(get_browser())
    except RuntimeError as error:
        sys.exit(str(error))
