"""`placeto fit`."""

import pytest

from placeto import Cluster, Device, save_cluster
from placeto.extraction import extract
from placeto.placers.strategies import outlook

MODELS = "tests.extraction.pytorch.models"
MIB = 2**20


def one(memory):
    return Cluster("one", (Device("cuda:0", "k80", memory),))


def fits(batch, memory, microbatches=1):
    source = f"{MODELS}:deep?batch={batch}&microbatches={microbatches}"
    return outlook(extract(source).graph, one(memory), "single").feasible


@pytest.mark.parametrize(("first", "memory"), [(64, 44 * MIB)])
def test_one_more_does_not_fit(placeto, first, memory):
    save_cluster(one(memory), "one.yaml")
    source = f"{MODELS}:deep?batch={first}"
    found = placeto("fit", source, "--cluster", "one.yaml", "--json")
    assert found.status == 0
    largest = found.document["largest"]
    assert fits(largest, memory)
    assert not fits(largest + 1, memory)
    assert found.document["fits"] == (first <= largest)
    assert len(found.document["tries"]) <= 12  # of some hundred batches


def test_multiples_of_microbatches(placeto):
    memory = 44 * MIB
    save_cluster(one(memory), "one.yaml")
    found = placeto("fit", f"{MODELS}:deep", "--cluster", "one.yaml", "--microbatches", 4)
    assert found.status == 0
    assert "fullest device" in found.out
    largest = int(found.err.split()[-1])
    assert largest % 4 == 0
    assert fits(largest, memory, 4)
    assert not fits(largest + 4, memory, 4)


def test_nothing_fits(placeto):
    save_cluster(one(MIB), "one.yaml")
    found = placeto("fit", f"{MODELS}:deep?batch=4", "--cluster", "one.yaml")
    assert found.status == 1
    assert "no batch fits, not even 1" in found.err


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("keras:VGG16",), "is no function of a module that imports torch"),
        ((f"{MODELS}:drops",), "drops takes no batch=N"),
        ((f"{MODELS}:deep?microbatches=2",), "give --microbatches in the place of"),
        ((f"{MODELS}:deep?batch=6", "--microbatches", "4"), "expected a multiple of 4 above 0"),
        ((f"{MODELS}:deep", "--strategy", "naive"), "has one device"),
    ],
)
def test_what_is_refused(placeto, argv, complaint):
    save_cluster(one(MIB), "one.yaml")
    assert complaint in placeto("fit", *argv, "--cluster", "one.yaml").complaint
