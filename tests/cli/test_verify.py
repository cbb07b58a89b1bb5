"""`placeto verify`."""

from types import SimpleNamespace

from placeto import load_instance, place
from placeto.zoo import instances

SMALL = "layered_03-k80x4"


def test_placements_are_set_beside_the_best_known(placeto):
    instance = load_instance(SMALL)
    for method in ("single", "heft"):
        place(instance.problem(), method).save(f"{method}.json")
    found = placeto("verify", "single.json", "heft.json", "--json")
    assert found.status == 0
    rows = found.document["rows"]
    assert [(row["file"], row["instance"]) for row in rows] == [
        ("single.json", SMALL),
        ("heft.json", SMALL),
    ]
    for row in rows:
        assert row["best_step_time"] == instance.best.step_time
        assert row["gap"] == row["step_time"] / instance.best.step_time - 1
        assert row["lower_bound"] == instance.lower_bound
        assert row["feasible"]
    shown = placeto("verify", "single.json")
    assert rows[0]["verdict"] in shown.out


def test_what_does_not_fit_is_told(placeto, monkeypatch):
    # No device of an instance is too small for its whole graph.
    place(load_instance(SMALL).problem(), "single").save("one.json")
    full = SimpleNamespace(step_time=1e-3, feasible=False)
    monkeypatch.setattr(instances, "simulate", lambda problem, devices: full)
    found = placeto("verify", "one.json", "--json")
    assert found.status == 1
    (row,) = found.document["rows"]
    assert (row["verdict"], row["feasible"]) == ("does not fit", False)


def test_what_is_refused(placeto):
    assert "no placement file" in placeto("verify").complaint
    assert "nothing.json" in placeto("verify", "nothing.json").complaint
    place(load_instance(SMALL).problem(), "single").save("one.json")
    assert "no instance 'nmt'" in placeto("verify", "one.json", "--instance", "nmt").complaint


def test_list_has_them(placeto):
    (row,) = (
        each for each in placeto("list", "--json").document["instances"] if each["name"] == SMALL
    )
    instance = load_instance(SMALL)
    assert row["best_step_time"] == instance.best.step_time
    assert row["gap"] == max(instance.best.step_time / instance.lower_bound - 1, 0)
    assert SMALL in placeto("list").out
