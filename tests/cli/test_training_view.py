"""What a person sees of a training run."""

import io
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from placeto.cli import main
from placeto.cli.training_view import ROWS, TrainingView, training_view
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


def test_before_the_first_update_nothing_is_known():
    head, message = last_picture(90, lambda view: view.say("starting 4 workers"))
    assert head.endswith("0/200 updates")
    assert message == "starting 4 workers"


def test_what_is_said_of_the_start_is_gone_when_there_is_an_update():
    def told(view):
        view.say("starting 4 workers")
        view.watch(REPORT, 42.4)

    assert len(last_picture(90, told)) == 3


def test_an_update_may_come_while_one_is_drawn():
    """The terminal is drawn in a thread of its own."""
    view = TrainingView(200, Console(file=io.StringIO()))

    class Read:
        """A report; while it is read, the next comes."""

        def __getattr__(self, name):
            if name == "cluster" and len(view._latest) == 1:
                view.watch(replace(REPORT, graph="nmt"), 1.0)
            return getattr(REPORT, name)

    view.watch(REPORT, 1.0)
    view._latest[REPORT.graph, REPORT.cluster] = Read()
    list(view.get_renderables())
    assert len(view._latest) == 2


def test_of_many_problems_the_latest_are_shown_and_names_are_no_markup():
    def told(view):
        for number in range(20):
            view.watch(replace(REPORT, graph=f"[red]{number:02d}"), 1.0)
        view.watch(replace(REPORT, graph="[red]03", cluster="k80x4"), 1.0)

    _, _, *rows = last_picture(90, told)
    shown = [f"[red]{number}" for number in range(20 - ROWS + 1, 20)]
    assert [row.split()[0] for row in rows] == ["[red]03", *shown]
    assert rows[0].split()[1:3] == ["on", "k80x4"]


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


def test_elsewhere_there_are_lines(capsys):
    with training_view(200) as (say, watch):
        say("episode 16: all is well")
    assert watch is None
    assert capsys.readouterr().err == "train: episode 16: all is well\n"
