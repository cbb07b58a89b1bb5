"""The study itself: what a plan has to do, what is done of it, and the command's options."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.transfer import study
from benchmarks.transfer.study import BEST_OF, FAMILIES, GREEDY, HEURISTICS, REFINED, Plan
from benchmarks.transfer.study import test_graphs as graphs_of
from placeto.envs import generator
from placeto.models.placeto.settings import PlacetoConfig
from placeto.placers import PLACERS, Placer
from placeto.placers.configs import Configurable, PlacetoPlacerConfig
from placeto.training import train
from placeto.zoo.families import members

NOT_NMT = ("cifar10", "ptb", "transformer")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Policies of one training, that say to have seen all families, or all but nmt."""
    folder = tmp_path_factory.mktemp("policies")
    config = PlacetoConfig(updates=1, episodes=2, rounds=1, width=4)
    problem = generator.fork()
    train([problem], config, folder / "run")
    card = json.loads((folder / "run" / "policy.json").read_text())
    weights = (folder / "run" / "policy.safetensors").read_bytes()
    found = {}
    for name, families in (("all", FAMILIES), ("apart", NOT_NMT)):
        graphs = [
            next(member.name for member in members(family) if member.split == "train")
            for family in families
        ]
        rows = [{**card["problems"][0], "graph": graph, "cluster": "k80x2"} for graph in graphs]
        (folder / name).mkdir()
        (folder / name / "policy.json").write_text(json.dumps({**card, "problems": rows}))
        (folder / name / "policy.safetensors").write_bytes(weights)
        found[name] = str(folder / name)
    return found


def test_what_a_plan_has_to_do(folders):
    plan = Plan(folders, ["nmt", "ptb"], ["k80x2"], ["auto"], 2, (1.0, 5.0), (4, 8))
    runs = [*plan.runs()]
    assert len({study._key(each) for each in runs}) == len(runs)
    # Problem by problem, the families in turn.
    graphs = list(dict.fromkeys(each["graph"] for each in runs))
    names = {
        family: [m.name for m in members(family) if m.split == "test"][:2]
        for family in ("nmt", "ptb")
    }
    assert graphs == [names[family][number] for number in (0, 1) for family in ("nmt", "ptb")]
    of_nmt, of_ptb = (
        [
            (each["method"], each["policy"], each["budget_seconds"])
            for each in runs
            if each["graph"] == graph
        ]
        for graph in graphs[:2]
    )
    beside = [(method, "", None) for method in HEURISTICS]
    trained = [("fine-tuned 4", "all", None), ("fine-tuned 8", "all", None)]
    trained += [("from scratch 8", "all", None)]
    trained += [
        (f"{method} after {training} 8", "all", None)
        for training in ("fine-tuned", "from scratch")
        for method in (GREEDY, BEST_OF, REFINED)
    ]
    searches = [(m, p, b) for b in (1.0, 5.0) for m, p in (("annealing", ""), ("auto", "all"))]
    zero_shot = [(GREEDY, "all", None), (BEST_OF, "all", None)]
    apart = [(GREEDY, "apart", None), (BEST_OF, "apart", None)]
    refined = [(REFINED, "all", None)]
    assert of_nmt == [*beside, *zero_shot, *apart, *refined, *trained, *searches]
    assert of_ptb == [*beside, *zero_shot, *refined, *trained, *searches]
    # On every other graph the other one goes first.
    last = [each["method"] for each in runs if each["graph"] == names["ptb"][1]][-4:]
    assert last == ["auto", "annealing"] * 2


@pytest.mark.parametrize("key", ["problems", "validation"])
def test_a_policy_that_has_seen_a_test_graph(tmp_path, folders, key):
    seen = Path(folders["all"])
    card = json.loads((seen / "policy.json").read_text())
    leaked = {**card, key: [*card.get(key, []), {"graph": graphs_of("nmt")[2], "cluster": "x"}]}
    (tmp_path / "policy.json").write_text(json.dumps(leaked))
    shutil.copy(seen / "policy.safetensors", tmp_path)
    with pytest.raises(SystemExit, match=f"was trained or validated on {graphs_of('nmt')[2]}, a"):
        study.conduct(
            Plan({"a": str(tmp_path)}, ["ptb"], ["k80x2"], ["auto"], 1), tmp_path / "t.json"
        )


def test_a_whole_small_study(tmp_path, folders, monkeypatch):
    """Every kind of run for real, on a made-up graph; the search that is guided is made up, too."""
    told = []

    def guided(incumbent, rng, config):
        told.append(config)
        incumbent.offer([0] * incumbent.problem.num_groups)

    config = Configurable(PlacetoPlacerConfig())
    monkeypatch.setitem(PLACERS, "auto", Placer("auto", "", guided, config=config))
    plan = Plan({"all": folders["all"]}, ["random"], ["k80x2"], ["auto"], 1, (0.2,), (2,))
    document = study.conduct(plan, tmp_path / "transfer.json")
    by_method = {each["method"]: each for each in document["runs"]}
    assert [*by_method] == [
        *HEURISTICS, GREEDY, BEST_OF, REFINED, "fine-tuned 2", "from scratch 2",
        *(f"{method} after fine-tuned 2" for method in (GREEDY, BEST_OF, REFINED)),
        *(f"{method} after from scratch 2" for method in (GREEDY, BEST_OF, REFINED)),
        "annealing", "auto",
    ]  # fmt: skip
    # What counts is what the trained policy finds as it is, and not what was met on the way.
    as_it_is = by_method[GREEDY]["evaluations"]
    trained = by_method[f"{GREEDY} after fine-tuned 2"]["evaluations"]
    assert by_method["fine-tuned 2"]["evaluations"] > as_it_is + trained
    assert all(each["feasible"] and not each["note"] for each in document["runs"])
    assert by_method[BEST_OF]["step_time"] <= by_method[GREEDY]["step_time"]
    assert by_method["annealing"]["wall_seconds"] < 5
    assert told[-1].policy == folders["all"]
    assert document["policies"]["all"]["families"] == sorted(FAMILIES)
