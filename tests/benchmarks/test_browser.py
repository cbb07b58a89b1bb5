import asyncio

import pytest

from benchmarks import browser


def test_the_path_is_found_before_playwright_runs(monkeypatch):
    # To find what `playwright install` has left takes a Playwright of its own, and where one runs
    # in a thread already, another refuses to.
    def find():
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        raise LookupError

    monkeypatch.setattr(browser, "get_browser", find)
    with pytest.raises(LookupError), browser.browser():
        pass
