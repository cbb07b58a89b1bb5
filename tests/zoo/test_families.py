"""What is in the families, and how it is split."""

import hashlib
import inspect
import random
from collections import Counter, defaultdict

import pytest

from placeto.extraction.source import parse_source, take_options
from placeto.support.errors import PlacetoError
from placeto.zoo.draws import drawn, shuffled
from placeto.zoo.families import (
    FAMILIES,
    SIZE,
    SPLITS,
    Member,
    is_synthetic,
    members,
    parse_member,
)

EXTRACTED = [name for name in FAMILIES if not is_synthetic(name)]


# What is trained on and what is tested on must be the same for everyone, or results cannot be
# compared: a change of these is a change of the benchmark.
@pytest.mark.parametrize(
    ("family", "digest"),
    {
        "cifar10": "dbe3b8e39d839642",
        "ptb": "ad3c89286a17fbf5",
        "nmt": "a7d2447791d3619a",
        "transformer": "f56a50f940a0f3bc",
        "pipelined": "76ebaeb8c02808a4",
        "layered": "35f67e24ac33b6fe",
        "series_parallel": "0801af2950510241",
        "random": "08c46cfa87744742",
    }.items(),
)
def test_members_and_splits_stay_the_same(family: str, digest: str) -> None:
    rows = "\n".join(f"{each.number} {each.split} {each.source}" for each in members(family))
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_split_into_train_validation_and_test(family: str) -> None:
    graphs = members(family)
    assert [each.number for each in graphs] == list(range(SIZE)) == list(range(32))
    assert Counter(each.split for each in graphs) == {"train": 20, "validation": 4, "test": 8}
    assert len({each.source for each in graphs}) == len({each.name for each in graphs}) == SIZE
    # Not the first ones to train on and the last ones to test on.
    assert [each.split for each in graphs] != sorted(each.split for each in graphs)
    for each in graphs:
        assert parse_member(each.reference) == each


def test_families_are_not_split_alike() -> None:
    assert len({tuple(each.split for each in members(family)) for family in FAMILIES}) == 8


@pytest.mark.parametrize("family", EXTRACTED)
def test_sources_are_models_of_the_zoo_with_options_that_they_have(family: str) -> None:
    models = pytest.importorskip("placeto.zoo.models", reason="the zoo needs placeto[tensorflow]")
    seen: Counter[str] = Counter()
    options: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for each in members(family):
        source = parse_source(each.source)
        assert source.scheme == "zoo"
        own = inspect.signature(models.STEPS[source.target]).parameters
        taken = take_options(source, {key: value.default for key, value in own.items()})
        if family == "transformer":
            assert taken["hidden"] % taken["heads"] == 0
            assert taken["length"] * taken["batch"] in (3072, 6144, 9216)
            assert 0 < taken["masked"] < taken["length"]
        if family == "pipelined":
            assert taken["microbatches"] in (4, 8)
            assert taken["batch"] % taken["microbatches"] == 0
        seen[source.target] += 1
        options[source.target].add(tuple(source.options))
    # In every source of a model the same options.
    assert seen.total() == SIZE
    assert {len(each) for each in options.values()} == {1}
    assert len(seen) == (2 if family == "pipelined" else 1)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("family:nmr?number=3", "nmr: no such family"),
        ("family:nmt", r"family:nmt: give family:nmt\?number=N"),
        ("family:nmt?number=", r"give family:nmt\?number=N"),
        ("family:nmt?number=-1", r"give family:nmt\?number=N"),
        ("family:nmt?number=x", r"give family:nmt\?number=N"),
        ("family:nmt?layers=3", r"give family:nmt\?number=N"),
        ("family:nmt?number=32", "nmt has no graph 32; they are numbered from 0 to 31"),
    ],
)
def test_graphs_that_no_family_has(text: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint):
        parse_member(text)


def test_names() -> None:
    member = Member("nmt", 7, "zoo:nmt?layers=2", "train")
    assert member.name == "nmt_07"
    assert member.reference == "family:nmt?number=7"
    assert set(SPLITS) == {"train", "validation", "test"}


def test_draws_are_fair_and_the_same_everywhere() -> None:
    # The floats of Python's generator are promised to stay: 0.844…, 0.757…, 0.420…, 0.258…
    rng = random.Random(0)
    assert [drawn("abcd", rng) for _ in range(4)] == ["d", "d", "b", "b"]
    assert shuffled("abc", random.Random(0)) == ["c", "b", "a"]
    orders = Counter("".join(shuffled("abc", rng)) for _ in range(6000))
    assert len(orders) == 6
    assert all(count == pytest.approx(1000, rel=0.15) for count in orders.values())
