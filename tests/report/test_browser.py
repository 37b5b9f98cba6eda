"""The page in a real browser: complete without network, no message on the console, no sideways scrolling."""

import json
import shutil
import subprocess

import pytest

from .reading import read

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# fmt: off
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync", "--v=0",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--enable-logging=stderr",
]
# fmt: on

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]


def _open(folder, tmp_path, *arguments):
    profile = tmp_path / "profile"
    return subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *arguments, (folder / "report.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.mark.parametrize(("stage", "hostile"), [("outside", True), ("interrupted", False)])
def test_the_browser_builds_the_page_that_was_written_and_complains_of_nothing(drawn, tmp_path, stage, hostile):
    run = drawn(stage, hostile=hostile)
    done = _open(run.folder, tmp_path, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    page = read(done.stdout.replace("\ufeff", ""))
    written = read(run.html)
    assert [each.words() for each in page.all("h2")] == [each.words() for each in written.all("h2")]
    assert len(page.all("svg")) == len(written.all("svg"))
    assert len(page.all("tr")) == len(written.all("tr"))
    assert page.all("main")[0].words() == written.all("main")[0].words()
    assert len(page.all("script")) == 1


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_is_no_wider_than_the_window(drawn, tmp_path, width):
    """A frame of the width asked for, for a headless window has a smallest width of its own."""
    run = drawn("outside")
    outer = tmp_path / "report.html"
    source = json.dumps(run.html.replace("default-src 'none'", "default-src 'self'")).replace("</", "<\\/")
    outer.write_text(
        f"<!DOCTYPE html><iframe id=f style='width:{width}px;height:900px;border:0'></iframe><p id=out></p><script>"
        f"f.srcdoc={source};f.onload=()=>{{let d=f.contentDocument.documentElement;"
        "out.textContent=d.scrollWidth+' '+d.clientWidth+' '+d.querySelectorAll('section').length}</script>"
    )
    done = _open(tmp_path, tmp_path, "--dump-dom", "--virtual-time-budget=5000")
    measured = next(each.words() for each in read(done.stdout).all("p") if each.attributes.get("id") == "out")
    assert measured == f"{width} {width} 10"
