"""The study of unseen graphs: what is run, its tables, and that the page is of the results."""

import json
import shutil
from importlib import resources

import numpy as np
import pytest

from benchmarks import transfer
from benchmarks.output import RESULTS
from benchmarks.transfer import FAMILIES, check_unseen, clusters_of, held_out, markdown, run
from placeto.models.stored import load_trained
from placeto.search.settings import PIPELINED, SHIPPED
from placeto.support.files import read_json


@pytest.mark.parametrize("family", FAMILIES)
def test_one_of_two_clusters_is_one_that_the_policy_has_learned_with(family):
    known, unseen = clusters_of(family)
    learned = load_trained(transfer.policy_of(family)).trained_on("cluster")
    assert known in learned
    assert unseen not in learned


def test_the_results_are_of_as_many_graphs_as_are_run():
    found = read_json(RESULTS / "transfer.json")["found"]
    assert {family: list(clusters) for family, clusters in found.items()} == {
        family: list(clusters_of(family)) for family in FAMILIES
    }
    ran = [each for clusters in found.values() for each in clusters.values()]
    assert all(sorted(each, key=int) == [str(n) for n in range(transfer.GRAPHS)] for each in ran)


def test_what_ships_has_seen_no_test_graph():
    check_unseen({SHIPPED: SHIPPED, PIPELINED: PIPELINED})


@pytest.mark.parametrize("key", ["problems", "validation"])
def test_a_policy_that_has_seen_a_test_graph(tmp_path, key):
    shipped = resources.files("placeto") / "data" / "policies"
    card = json.loads((shipped / f"{SHIPPED}.json").read_text())
    name = held_out("nmt")[2].name
    card[key] = [*card.get(key, []), {**card["problems"][0], "graph": name}]
    (tmp_path / "policy.json").write_text(json.dumps(card))
    with resources.as_file(shipped / f"{SHIPPED}.safetensors") as weights:
        shutil.copy(weights, tmp_path / "policy.safetensors")
    with pytest.raises(SystemExit, match=f"seen: was trained or validated on {name}, a test"):
        check_unseen({"seen": str(tmp_path)})


def test_everything_is_run():
    found = run(("layered", 0, "k80x2", ((SHIPPED, SHIPPED),), (0.05,), 0.1))
    assert set(transfer.HEURISTICS) <= set(found)
    assert set(found) - set(transfer.HEURISTICS) == {
        "placeto, greedy", "placeto, best of 16", "auto, 0.05 s, placeto",
        "auto, 0.05 s, no policy", "auto, groups papers", "placeto, 0.1 s", "auto, 0.1 s",
    }  # fmt: skip
    assert all(np.isfinite(each["step_time"]) and each["seconds"] > 0 for each in found.values())
    assert found["placeto, best of 16"]["step_time"] <= found["placeto, greedy"]["step_time"]


def problem(**found):
    names = {
        "greedy": "placeto, greedy", "best": "placeto, best of 16", "placeto": "placeto, 9 s",
        "with_it": "auto, 1 s, placeto", "without": "auto, 1 s, no policy", "auto": "auto, 9 s",
        "papers": "auto, groups papers",
    }  # fmt: skip
    return {
        names.get(name, name): {"step_time": seconds, "seconds": 0.25}
        for name, seconds in found.items()
    }


def test_tables_by_hand():
    first = problem(single=4.0, metis=2.0, heft=np.inf, greedy=3.0, best=2.0, with_it=1.0,
                    without=2.0, placeto=1.0, auto=1.0, papers=2.0)  # fmt: skip
    second = problem(single=4.0, metis=8.0, heft=1.0, greedy=3.0, best=1.5, with_it=1.0,
                     without=0.5, placeto=4.0, auto=1.0, papers=8.0)  # fmt: skip
    document = {
        "found": {"nmt": {"k80x4": {"0": first, "1": second}}},
        "short_seconds": [1.0], "long_seconds": 9.0, "policies": ["placeto"],
    }  # fmt: skip
    assert markdown(document).splitlines() == [
        "| family | cluster | nearest heuristic | greedy | best of 16 | s | ahead | `auto`, 1 s, "
        "with / without | `placeto`, 9 s | over groups `papers` |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| nmt | `k80x4` | 4.000 (`single`) | 3.000 | 1.732 | 0.25 | 1 of 2 | 1.000 / 1.000 | "
        "2.000 | 0.250 |",
        "",
        "| policy | nmt, greedy / best of 16 |",
        "| --- | ---: |",
        "| `placeto` | 3.000 / 1.732 |",
    ]


def test_what_does_not_fit_is_told():
    assert transfer.mean([2.0, 8.0]) == "4.000"
    assert transfer.mean([2.0, np.inf]) == "2.000 (1)"
    assert transfer.mean([np.inf]) == "- (0)"


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "transfer.json")
    assert (RESULTS / "transfer.md").read_text() == markdown(document)


def test_a_picture_is_drawn(tmp_path):
    transfer.draw(read_json(RESULTS / "transfer.json"), tmp_path / "transfer.png")
    assert (tmp_path / "transfer.png").stat().st_size > 10_000
