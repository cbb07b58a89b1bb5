"""What holds for every command: help, errors in one line, exit statuses, start-up."""

import json
import os
import subprocess
import sys
import time

import pytest

from placeto.cli import COMMANDS

PLACE = ("place", "fork.json", "--cluster", "duo.yaml", "--grouping", "none", "--method", "etf")
COMPARE = ("compare", "fork.json", "--cluster", "duo.yaml")
SIMULATE = ("simulate", "fork.json", "--cluster", "duo.yaml")


def command(*argv: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "placeto", *argv], capture_output=True, text=True, **options
    )


def test_help_names_every_command_in_under_a_second():
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        shown = command("--help")
        seconds.append(time.perf_counter() - begin)
    assert shown.returncode == 0
    assert shown.stderr == ""
    for name, summary in COMMANDS.items():
        assert name in shown.stdout
        assert summary in shown.stdout
    assert min(seconds) < 1


def test_help_loads_nothing_heavy():
    heavy = ("numba", "torch", "tensorflow", "keras", "matplotlib", "ray", "tyro", "rich")
    code = (
        "import sys; from placeto.cli import main; main(['--help']);"
        f"print(*[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.stderr.split() == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_loads_a_framework_before_it_needs_one(name):
    code = (
        f"import sys; from placeto.cli import main; main([{name!r}, '--help']);"
        "heavy = ('torch', 'tensorflow', 'keras', 'matplotlib', 'ray');"
        "print(*[name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.stderr.split() == []
    assert f"usage: placeto {name}" in shown.stdout
    assert "--json" in shown.stdout


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "no command"),
        (["plaec"], "there is no command 'plaec'; commands: "),
        (["place"], "GRAPH --cluster PRESET|FILE; see placeto place --help"),
        (["place", "fork.json"], "missing from placeto place: --cluster"),
        (["place", "fork.json", "--cluster"], "missing value for argument '--cluster'"),
        ([*PLACE, "--foo"], "unrecognized options: --foo; see placeto place --help"),
        ([*PLACE, "--budgt", "3"], "perhaps you meant: --budget"),
        ([*PLACE, "--seed", "x"], "--seed: invalid literal for int() with base 10: 'x'"),
        ([*PLACE, "--seed", "-1"], "seed is -1, expected a whole number from 0"),
        ([*PLACE, "--budget", "0"], "budget is 0.0 seconds, expected more than 0"),
        ([*PLACE, "--method", "ettf"], "no placer is called 'ettf'; placers: "),
        ([*PLACE, "--grouping", "0"], "grouping is 0, expected at least 1 group"),
        ([*PLACE, "--grouping", "metis"], "grouping is 'metis', expected auto, papers, none"),
        ([*PLACE, "--cluster", "k80x3"], "k80x3: no such file, and no bundled name"),
        ([*PLACE, "--cluster", "k80x2"], "no op_seconds for device kind 'k80'"),
        ([*PLACE, "-o", "missing/p.json"], "missing/p.json: cannot be written: No such file"),
        ([*PLACE, "-o", "."], ".: cannot be written: not an ordinary file"),
        ([*PLACE, "-o", "fork.json"], "fork.json: would be overwritten"),
        ([*PLACE, "--pin", "0"], "--pin 0: expected GROUP=DEVICE, such as 0=d0"),
        ([*PLACE, "--pin", "4=d0"], "there is no group 4; groups go from 0 to 3"),
        ([*PLACE, "--pin", "e=d0"], "has no op 'e'; give an op's name or a group from 0 to 3"),
        ([*PLACE, "--pin", "a=d2"], "--pin a=d2: cluster 'by hand': there is no device 'd2'"),
        ([*PLACE, "--pin", "a=d0", "--pin", "0=1"], "pinned to both 'd0' and 'd1'"),
        (["compare", "--cluster", "duo.yaml"], "no graph; name at least one"),
        ([*COMPARE, "--methods", "single,ettf"], "no placer is called 'ettf'"),
        ([*COMPARE, "--methods", "single,cpu"], "has no device of kind cpu"),
        ([*SIMULATE, "--placement", "no.json"], "no.json: cannot be read: No such file"),
        ([*SIMULATE, "--placement", "fork.json"], "format is 'placeto.graph'"),
        (["show", "nothing.json"], "nothing.json: no such file, and no bundled name"),
        (["show", "duo.yaml"], "duo.yaml: not valid JSON"),
        (["extract", "zoo:nmt"], "missing from placeto extract: -o FILE, --output FILE"),
        (["extract", "zoo:nmt", "-o", "g.txt"], "a graph file's name ends in .json or .json.gz"),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(placeto, tmp_path, argv, says):
    before = sorted(tmp_path.iterdir())
    result = placeto(*argv)
    assert says in result.complaint
    assert result.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_errors_are_the_same_in_a_process_of_their_own(placeto, tmp_path):
    argv = [*PLACE, "--pin", "e=d0"]
    # Output that can hold no box-drawing characters does not change the message.
    shown = command(*argv, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == placeto(*argv).err
    shown = command("place", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert shown.stderr == placeto("place").err


def test_a_reader_that_goes_away_is_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "placeto", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141
    process.stderr.close()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(unbuffered):
    with open("/dev/full", "w") as full:
        shown = subprocess.run(
            [sys.executable, "-m", "placeto", "show", "nmt", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert "No space left on device" in shown.stderr


def test_closed_streams(placeto, tmp_path):
    """What a shell does for `2>&-` and `>&-`."""
    code = (
        "import os, sys\n"
        "os.close(int(sys.argv[1]))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'placeto', *sys.argv[2:]])\n"
    )

    def closed(stream, *argv):
        return subprocess.run(
            [sys.executable, "-c", code, str(stream), *argv], capture_output=True, text=True
        )

    without_errors = closed(2, *PLACE, "--json", "-o", "p.json")
    assert without_errors.returncode == 0
    assert json.loads(without_errors.stdout)["step_time"] == 13.0
    assert closed(2, "place", "nowhere.json").returncode == 2
    without_output = closed(1, "list", "--json")
    assert without_output.returncode == 2
    assert without_output.stderr == "placeto: error: standard output: is closed\n"


def test_output_without_unicode(placeto, tmp_path):
    shown = command(
        "show", "fork.json", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert shown.returncode == 0
    assert shown.stdout.isascii()


def test_version(placeto):
    assert placeto("--version").out == "placeto 0.1.0\n"
