"""The command line: `placeto COMMAND …`.

A command is a module here with a frozen dataclass of arguments, named like the command, and
`run(arguments) -> int`, which returns the exit status. Only the module of the command at hand is
imported, so that `placeto --help` is fast.
"""

import importlib
import os
import sys
import time
from collections.abc import Sequence

import placeto
from placeto.cli.output import abandon, write
from placeto.support.errors import PlacetoError
from placeto.support.interrupts import interrupts

INTERRUPTED = 130
BROKEN_PIPE = 141


COMMANDS = {
    "list": "bundled graphs, cluster presets, placers, policies, named instances",
    "extract": "a real training step -> graph file",
    "show": "what is in a graph: ops, bytes, critical path, groups, bounds",
    "place": "find a placement",
    "compare": "a table of placers on the same problem",
    "fit": "the largest batch of a PyTorch module that fits",
    "simulate": "step time, memory and timeline of a placement",
    "verify": "placements beside the best known of named instances",
    "measure": "step time of a placement that is run for real",
    "detect": "the devices of this machine, as a cluster file",
    "calibrate": "op times and channels of real devices",
    "train": "train a policy",
    "evaluate": "what a trained policy is worth on other graphs",
}

WIDTH = max(map(len, COMMANDS))
LINES = "\n".join(f"  {name:<{WIDTH}}  {summary}" for name, summary in COMMANDS.items())
HELP = f"""\
usage: placeto COMMAND … [--json]

Device placement: which device should run each op of a training step.

commands:
{LINES}

placeto COMMAND --help says what a command takes.
"""


_began = time.monotonic()  # when the command did


def seconds_taken() -> float:
    """Seconds since the command began, loading its code included."""
    return time.monotonic() - _began


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command, by what stands after `placeto`.

    Returns:
        The exit status: 0; 2 for input that cannot be used, after one line on stderr that says
        what is wrong; 130 after Ctrl-C; 141 where the reader of stdout went away.
    """
    global _began
    _began = time.monotonic()
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
        print(f"placeto: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("placeto: interrupted; nothing was found yet", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        abandon()
        return BROKEN_PIPE
    return status


def _dispatch(arguments: list[str]) -> int:
    known = f"commands: {', '.join(COMMANDS)}; see placeto --help"
    if not arguments:
        raise PlacetoError(f"no command; {known}")
    name = arguments[0]
    if name in ("-h", "--help", "--version"):
        write(f"placeto {placeto.__version__}\n" if name == "--version" else HELP)
        return 0
    if name not in COMMANDS:
        what = "option" if name.startswith("-") else "command"
        raise PlacetoError(f"there is no {what} {name!r}; {known}")
    from placeto.cli.parsing import parse

    # Not a module `list`: as an attribute of this package it would hide the built-in one.
    module = importlib.import_module(f"placeto.cli.{'listing' if name == 'list' else name}")
    argv = arguments[1:]
    kind = module.arguments_of(argv) if name == "train" else getattr(module, name.capitalize())
    parsed = parse(kind, argv, f"placeto {name}")
    status: int = 0 if parsed is None else module.run(parsed)
    return status
