"""The command line: `placeto COMMAND …`.

A command is a module here with a frozen dataclass of arguments and `run(arguments) -> int`, which
returns the exit status. Only the module of the command at hand is imported, so that `placeto
--help` is fast.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import placeto
from placeto.cli.output import abandon, write
from placeto.support.errors import PlacetoError
from placeto.support.interrupts import interrupts

INTERRUPTED = 130
BROKEN_PIPE = 141


@dataclass(frozen=True)
class Command:
    """An entry of the command table.

    Attributes:
        module: of `placeto.cli`, where `run` is.
        arguments: the dataclass in it, or a function that finds it by the command line.
        summary: one line for `placeto --help`.
    """

    module: str
    arguments: str
    summary: str


COMMANDS = {
    # Not a module `list`: as an attribute of this package it would hide the built-in one.
    "list": Command("listing", "List", "bundled graphs, cluster presets, placers, policies"),
    "extract": Command("extract", "Extract", "a real training step -> graph file"),
    "show": Command(
        "show", "Show", "what is in a graph: ops, bytes, critical path, groups, bounds"
    ),
    "place": Command("place", "Place", "find a placement"),
    "compare": Command("compare", "Compare", "a table of placers on the same problem"),
    "simulate": Command("simulate", "Simulate", "step time, memory and timeline of a placement"),
    "measure": Command("measure", "Measure", "step time of a placement that is run for real"),
    "calibrate": Command("calibrate", "Calibrate", "op times and channels of real devices"),
    "train": Command("train", "arguments_of", "train a policy"),
    "evaluate": Command("evaluate", "Evaluate", "what a trained policy is worth on other graphs"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: what stands after `placeto`; `sys.argv` by default.

    Returns:
        The exit status: 0; 2 for input that cannot be used, after one line on stderr that says
        what is wrong; 130 after Ctrl-C; 141 where the reader of stdout went away.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # it is closed, and `print` would take stdout
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    try:
        if sys.stdout is None:
            raise PlacetoError("standard output: is closed")
        with interrupts():
            status = _dispatch(arguments)
        write()
    except PlacetoError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        print("placeto: interrupted; nothing was found yet", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        abandon()
        return BROKEN_PIPE
    return status


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        return _failed(f"no command; commands: {', '.join(COMMANDS)}; see placeto --help")
    name = arguments[0]
    if name in ("-h", "--help"):
        write(f"{_help()}\n")
        return 0
    if name == "--version":
        write(f"placeto {placeto.__version__}\n")
        return 0
    if name not in COMMANDS:
        what = "option" if name.startswith("-") else "command"
        return _failed(
            f"there is no {what} {name!r}; commands: {', '.join(COMMANDS)}; see placeto --help"
        )
    from placeto.cli.parsing import HelpShown, parse

    command = COMMANDS[name]
    module = importlib.import_module(f"placeto.cli.{command.module}")
    kind = getattr(module, command.arguments)
    if not isinstance(kind, type):
        kind = kind(arguments[1:])
    try:
        parsed = parse(kind, arguments[1:], f"placeto {name}")
    except HelpShown:
        return 0
    status: int = module.run(parsed)
    return status


def _help() -> str:
    width = max(map(len, COMMANDS))
    return "\n".join(
        [
            "usage: placeto COMMAND … [--json]",
            "",
            "Device placement: which device should run each op of a training step.",
            "",
            "commands:",
            *(f"  {name:<{width}}  {entry.summary}" for name, entry in COMMANDS.items()),
            "",
            "placeto COMMAND --help says what a command takes.",
        ]
    )


def _failed(message: str) -> int:
    line = " ".join(message.split())
    print(f"placeto: error: {line}", file=sys.stderr)
    return 2
