"""Every block of code that the README and the documentation show, run."""

import pytest

from tests.docs.blocks import OUTPUT, ROOT, SHELLS, Reader, blocks, commands, matches

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = {path.relative_to(ROOT).as_posix(): blocks(path) for path in PAGES}
ON_RAY = "docs/howto/ray.md"

# What cannot be run here, by page and first line, and why.
NOT_RUN = {
    ("README.md", "pip install"): "installs all packages again",
    ("docs/cli.md", "placeto list"): "minutes; other pages run each command",
    ("docs/cli.md", "placeto extract"): "minutes; other pages run each command",
    ("docs/cli.md", "placeto place"): "minutes on two quiet cores",
    ("docs/cli.md", "placeto train"): "hours",
    ("docs/howto/measuring.md", "placeto calibrate"): "minutes on two quiet cores",
    ("docs/howto/measuring.md", "export MALLOC_ARENA_MAX=1"): "serves until it is stopped",
    ("docs/howto/measuring.md", "import sys"): "serves until it is stopped",
    ("docs/howto/pipelines.md", "placeto extract"): "ten minutes on two quiet cores",
    ("docs/howto/pipelines.md", "placeto place"): "minutes, as it extracts one graph after another",
    ("docs/howto/ray.md", "placeto train"): "minutes on two quiet cores",
    ("docs/howto/ray.md", "ray start"): "needs several machines",
    ("docs/howto/torch_pipelines.md", "pip install"): "installs all packages again",
    ("docs/howto/torch_pipelines.md", "OMP_NUM_THREADS=1 torchrun"): "tests/examples runs it",
    ("docs/howto/torch_pipelines.md", "placeto calibrate"): "a minute on two quiet cores",
    ("docs/howto/torch_pipelines.md", "placeto fit"): "a minute, as it extracts again and again",
    ("docs/results/instances.md", "python -m"): "changes what ships",
    ("docs/rl_libraries.md", "pip install"): "installs packages; tests/examples runs the examples",
    ("docs/tutorial.md", "python -m"): "installs all packages again",
}
PROGRAMS = ("$ ", "placeto ", "pip ", "python ", "make ", ">>> ")
SHOWN = ("text", "json", "yaml", "toml", "diff", "html")


@pytest.mark.parametrize("page", [page for page in BLOCKS if page != ON_RAY])
def test_blocks_of_a_page_run_in_order(page, tmp_path):
    reader = Reader(tmp_path)
    for block in BLOCKS[page]:
        reader.do(block)


@pytest.mark.usefixtures("ray")
def test_blocks_of_the_page_on_ray_run_in_order(tmp_path):
    test_blocks_of_a_page_run_in_order(ON_RAY, tmp_path)


def test_what_is_not_run_is_listed():
    marked = {(b.page, b.begins_with) for page in BLOCKS.values() for b in page if not b.run}
    assert marked == set(NOT_RUN)


def test_every_block_says_what_it_is():
    for page in BLOCKS.values():
        for block in page:
            where = f"{block.page}:{block.line}"
            assert block.language in ("python", *SHELLS, *SHOWN), where
            assert block.language == "text" or block.title != OUTPUT, where


def test_text_is_no_way_around_being_run():
    for page in BLOCKS.values():
        for block in page:
            if block.language in SHOWN:
                found = [line for line in block.text.splitlines() if line.startswith(PROGRAMS)]
                assert found == [], f"{block.page}:{block.line}"


def test_examples_that_pages_show_are_run():
    shown = {block.title for page in BLOCKS.values() for block in page}
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "examples").glob("test_*.py"))
    for path in (ROOT / "docs" / "examples").glob("*.py"):
        assert path.name in shown
        assert f'"{path.name}' in tests


def test_outputs_stand_below_what_is_run():
    for page in BLOCKS.values():
        for before, block in zip([None, *page], page, strict=False):
            if block.title == OUTPUT:
                assert before is not None, block.page
                assert before.run, f"{block.page}:{block.line}"
                assert before.language in ("python", *SHELLS), f"{block.page}:{block.line}"


def test_prompts_part_commands_from_output():
    text = "$ echo a \\\n  b\na b\n$ ls\n"
    assert commands(text) == "echo a \\\n  b\nls"
    assert commands("echo a\n") == "echo a\n"


def test_an_ellipsis_stands_for_anything_and_all_else_for_itself():
    assert matches("a 1.5 s\nb\n", "a … s\nb\n")
    assert matches("a  \nb", "a\nb")
    assert not matches("a 1.5 s\nb\n", "a … ms\nb\n")
    assert not matches("ab", "a.")
