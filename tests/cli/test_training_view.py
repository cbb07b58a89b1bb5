"""What a person sees of a training run."""

import io
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from placeto.cli import main
from placeto.cli.training_view import TrainingView
from placeto.training import UpdateReport
from tests.cli.test_train import TRAIN

REPORT = UpdateReport(
    update=120,
    graph="inception_v3",
    cluster="k80x2",
    step_time=0.6123,
    best_step_time=0.5691,
    mean_return=0.1,
    entropy=0.4249,
    gradient_norm=1.312,
    learning_rate=1e-3,
    episodes=1920,
    evaluations=9000,
    steps_per_second=2660.4,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def last_picture(width, told):
    """The lines that are on a terminal when a run is over."""
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=width, color_system=None)
    with TrainingView(200, console) as view:
        told(view)
    return picture(terminal.getvalue())


def picture(text):
    """What was drawn last: a picture begins where the one before was wiped."""
    last = re.split(r"\r(?:\x1b\[\d*[AK])+", text.rpartition("\x1b[?25h")[0])[-1]
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;?]*\w|\r", "", last).splitlines()]


def test_a_run_is_drawn_with_all_that_one_wants_to_know():
    def told(view):
        view.say("starting 4 workers")
        view.watch(replace(REPORT, update=119, step_time=9.0), 43.0)
        view.watch(REPORT, 42.4)
        view.say("update 120: 0.7312 of one device on 2 validation problems")

    head, names, row, message = last_picture(90, told)
    assert re.fullmatch(r"train ━+╸? +120/200 updates 0:00:42 left", head)
    filled = head.count("━")
    assert filled == pytest.approx(0.6 * (90 - len("train  120/200 updates 0:00:42 left")), abs=2)
    assert names.split() == ["graph", "step", "time", "best", "entropy", "gradient", "steps/s"]
    assert row.split() == ["inception_v3", "612.3", "ms", "569.1", "ms", "0.42", "1.31", "2,660"]
    assert message == "update 120: 0.7312 of one device on 2 validation problems"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_picture_is_as_wide_as_the_terminal_at_most(width):
    lines = last_picture(width, lambda view: view.watch(REPORT, 42.4))
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    assert "120/200 updates" in lines[0]


def test_a_run_on_a_terminal_is_drawn_in_place(folder, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert main([*TRAIN]) == 0
    head, _, row, *_ = picture(terminal.getvalue())
    assert "3/3 updates 0:00:00 left" in head
    assert row.startswith("by hand")
    assert terminal.getvalue().endswith("placeto: 3 updates, 6 episodes; the run is in run\n")
