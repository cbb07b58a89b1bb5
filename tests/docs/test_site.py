"""The documentation as a site."""

import re
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT

LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="?([^" >]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site):
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        folder = path.parent if path.name == "index" else path
        assert (site / folder / "index.html").is_file(), path


def test_pages_load_nothing_from_a_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert [url for url in LOADED.findall(page.read_text()) if "//" in url] == [], page
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(), style
        assert "url(//" not in style.read_text(), style


def test_everything_that_the_package_offers_is_in_the_api(site):
    import placeto

    api = (site / "api" / "index.html").read_text()
    assert [name for name in placeto.__all__ if f'id="placeto.{name}"' not in api] == []
