"""The study of the policy of pipelined steps: its table, and that the page is of the results."""

from benchmarks.output import RESULTS
from benchmarks.pipelined_policy import markdown
from placeto.support.files import read_json

FOUND = {
    "ours": {
        "a on x": {"greedy": 0.5, "auto, 1 s": 0.4},
        "b on x": {"greedy": 0.8, "auto, 1 s": 0.9},
    },
    "none": {"a on x": {"auto, 1 s": 0.6}, "b on x": {"auto, 1 s": 0.6}},
}


def test_means_are_geometric_and_of_what_there_is():
    assert markdown(FOUND).splitlines() == [
        "| policy | greedy | auto, 1 s |",
        "| --- | ---: | ---: |",
        "| `ours` | 0.6325 | 0.6000 |",
        "| `none` | - | 0.6000 |",
    ]


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "pipelined_policy.json")
    assert (RESULTS / "pipelined_policy.md").read_text() == markdown(document["ratios"])
