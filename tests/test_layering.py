"""The rooms of the design: who imports whom, and what."""

import ast
from collections.abc import Iterator
from pathlib import Path

from importlinter.cli import lint_imports

import placeto

PACKAGE = Path(placeto.__file__).parent
ROOT = PACKAGE.parent

FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {"torch", "torch_geometric", "tensorflow", "keras", "matplotlib", "ray", "tensorboard"}
# The rooms that networks live in: others import them where they use them.
LEARNING = {"models", "training"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            assert node.module is not None
            if node.module == "placeto":
                yield from (f"placeto.{alias.name}" for alias in node.names)
            else:
                yield node.module


class AtImport(ast.NodeTransformer):
    """Drops what is not executed when a file is imported: functions, blocks for type checkers."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        checking = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if checking else self.generic_visit(node)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def test_imports_only_from_rooms_above():
    """As `pyproject.toml` has them, by import-linter, which looks at imports in functions, too."""
    assert lint_imports(str(ROOT / "pyproject.toml")) == 0


def test_frameworks_are_imported_where_they_are_used():
    for path in FILES:
        room = room_of(path)
        heavy = {name.split(".")[0] for name in imported(AtImport().visit(parse(path)))} & HEAVY
        if room in LEARNING or path == PACKAGE / "support" / "threads.py":
            heavy -= {"torch", "torch_geometric"}
        elif path.parent == PACKAGE / "measurement" / "pytorch":  # what runs it; imported late
            heavy -= {"torch"}
        elif room == "integrations":  # its files are imported by those who use the library
            heavy -= {"torch", "ray"}
        elif room in ("extraction", "zoo"):
            heavy -= {"tensorflow", "keras"}
        assert not heavy, path


AGENTS = sorted(
    path.name for path in (PACKAGE / "models").iterdir() if (path / "agent.py").exists()
)
OUTSIDE = [path for path in FILES if path.parent.parent != PACKAGE / "models"]


def test_every_agent_has_its_folder():
    assert AGENTS == ["colocrl", "hierarchical", "placeto", "placeto_2019"]
    for name in AGENTS:
        for part in ("__init__", "agent", "network", "settings"):
            assert (PACKAGE / "models" / name / f"{part}.py").exists()


def test_no_agent_is_named_outside_its_folder():
    """Its agent, that is, and its network's policy; settings have names of their own."""
    named = {f"placeto.models.{name}.{part}" for name in AGENTS for part in ("agent", "network")}
    for path in OUTSIDE:
        found = named & set(imported(parse(path)))
        if room_of(path) == "integrations":  # layers that RL libraries build their own policies of
            found -= {"placeto.models.placeto_2019.network"}
        assert not found, path
