"""The rooms of the design: each imports only from those above it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import placeto

PACKAGE = Path(placeto.__file__).parent

# From the top down. Rooms of one line do not know each other.
ROOMS = [
    ("support",),
    ("graph",),
    ("cluster", "grouping"),
    ("problem",),
    ("simulation",),
    ("placement", "objective"),
    ("bounds",),
    ("heuristics",),
    ("zoo",),
    ("extraction",),
    ("measurement",),
    ("envs",),
    ("models",),
    ("search",),
    ("training",),
    ("placers",),
    ("reports",),
    ("integrations",),
    ("cli",),
    ("__main__",),
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
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


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} - {"__init__"} == set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_from_rooms_above(path):
    room = room_of(path)
    if room == "__init__":  # the front door, which shows what rooms hold
        return
    for name in imported(parse(path)):
        parts = name.split(".")
        if parts[0] != "placeto" or len(parts) == 1:
            continue
        other = parts[1]
        assert other == room or LEVEL[other] < LEVEL[room], f"{room} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_frameworks_are_imported_where_they_are_used(path):
    room = room_of(path)
    heavy = {name.split(".")[0] for name in imported(AtImport().visit(parse(path)))} & HEAVY
    if room in LEARNING or path == PACKAGE / "support" / "threads.py":
        heavy -= {"torch", "torch_geometric"}
    elif room == "integrations":  # its files are imported by those who use the library
        heavy -= {"torch", "ray"}
    elif room in ("extraction", "zoo"):
        heavy -= {"tensorflow", "keras"}
    assert not heavy


AGENTS = sorted(
    path.name for path in (PACKAGE / "models").iterdir() if (path / "agent.py").exists()
)
OUTSIDE = [path for path in FILES if path.parent.parent != PACKAGE / "models"]


def test_every_agent_has_its_folder():
    assert AGENTS == ["colocrl", "hierarchical", "placeto", "placeto_2019"]
    for name in AGENTS:
        for part in ("__init__", "agent", "network", "settings"):
            assert (PACKAGE / "models" / name / f"{part}.py").exists()


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_agent_is_named_outside_its_folder(path):
    """Its agent, that is, and its network's policy; settings have names of their own."""
    named = {f"placeto.models.{name}.agent" for name in AGENTS} | {
        f"placeto.models.{name}.network" for name in AGENTS
    }
    if room_of(path) == "integrations":  # layers that RL libraries build their own policies of
        named -= {"placeto.models.placeto_2019.network"}
    assert not named & set(imported(parse(path)))
