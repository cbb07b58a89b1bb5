"""Fenced code blocks of Markdown pages: found, and run as a reader would."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from placeto.cli import main

ROOT = Path(__file__).parent.parent.parent

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r'title="([^"]+)"')
SHELLS = ("bash", "console", "sh", "shell")
INCLUDE = re.compile(r'^--8<-- "([^"]+)"\n', re.MULTILINE)
OUTPUT = "Output"
ANYTHING = "…"
QUOTED = re.compile(r"'[^'\n]*'")
SHELL_ONLY = re.compile(r"[|&;<>$*?~#`()]")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: where it is, from the repository's root.
        line: of the page, from 1.
        language: the first word after the fence; "" for none.
        title: what stands above it: the name of the file that it is, or `Output`, that of the
            block before it.
        run: whether it is not marked `.not-run`.
        text: without the indentation of the fence.
    """

    page: str
    line: int
    language: str
    title: str
    run: bool
    text: str

    @property
    def begins_with(self) -> str:
        return " ".join(self.text.split()[:2])


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order; a file that one includes stands in its place."""
    return list(_blocks(path))


def _blocks(path: Path) -> Iterator[Block]:
    text = path.read_text()
    for match in FENCE.finditer(text):
        info = match["info"].strip()
        title = TITLE.search(info)
        yield Block(
            page=path.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, match.start()) + 1,
            language=re.match(r"[\w+-]*", info)[0],
            title=title[1] if title else "",
            run=".not-run" not in info,
            text=INCLUDE.sub(lambda found: (ROOT / found[1]).read_text(), dedent(match["text"])),
        )


class Reader:
    """Does what a page says, block by block, in a folder and in one namespace.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = {"__name__": "__main__"}
        self._said = ""

    def do(self, block: Block) -> None:
        """Runs a block, writes the file that it is, or compares it with what the last one said."""
        where = f"{block.page}:{block.line}"
        if block.title == OUTPUT:
            assert matches(self._said, block.text), f"{where}: the output is\n{self._said}"
        elif block.title:
            (self._folder / block.title).write_text(block.text)
        elif not block.run:
            self._said = ""
        elif block.language == "python":
            self._said = self._python(block, where)
        elif block.language in SHELLS:
            self._said = self._shell(commands(block.text), where)

    def _python(self, block: Block, where: str) -> str:
        code = compile("\n" * block.line + block.text, ROOT / block.page, "exec")
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(io.StringIO()) as said:
            exec(code, self._names)
        return said.getvalue()

    def _shell(self, script: str, where: str) -> str:
        lines = script.replace("\\\n", " ").split("\n")
        lines = [line for line in lines if line.strip()]
        shell = SHELL_ONLY.search(QUOTED.sub("", script))
        if all(line.startswith("placeto ") for line in lines) and not shell:
            return "".join(self._placeto(shlex.split(line)[1:], where) for line in lines)
        path = [str(Path(sys.executable).parent), os.environ["PATH"]]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._folder,
            env=os.environ | {"PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{where}: {done.stdout}{done.stderr}"
        return done.stdout

    def _placeto(self, arguments: list[str], where: str) -> str:
        """Runs the command in this process, which has read the libraries in."""
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(io.StringIO()) as said:
            assert main(arguments) == 0, f"{where}: {arguments}: {said.getvalue()}"
        return said.getvalue()


def commands(text: str) -> str:
    """The script of a block: all of it, or what follows the prompts `$ ` if it has any."""
    lines = text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        return text
    script, goes_on = [], False
    for line in lines:
        if line.startswith("$ ") or goes_on:
            script.append(line.removeprefix("$ "))
            goes_on = line.endswith("\\")
    return "\n".join(script)


def matches(said: str, shown: str) -> bool:
    """Whether output is what a page shows, where `…` is anything; spaces at ends do not count."""

    def lines(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    pattern = ".*".join(re.escape(part) for part in lines(shown).split(ANYTHING))
    return re.fullmatch(pattern, lines(said), re.DOTALL) is not None
