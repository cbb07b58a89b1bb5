"""`placeto fit`."""

import pytest

from placeto import Channel, Cluster, Device, save_cluster
from placeto.extraction import extract
from placeto.placers.strategies import outlook

MODELS = "tests.extraction.pytorch.models"


def one(memory):
    return Cluster("one", (Device("cuda:0", "k80", memory),))


def fits(batch, memory, microbatches):
    source = f"{MODELS}:mlp?batch={batch}&microbatches={microbatches}"
    return outlook(extract(source).graph, one(memory), "single").feasible


@pytest.mark.parametrize(("first", "microbatches"), [(8, 1), (512, 4)])
def test_one_more_does_not_fit(placeto, first, microbatches):
    memory = 16 * 2**10
    save_cluster(one(memory), "one.yaml")
    argv = (f"{MODELS}:mlp?batch={first}", "--cluster", "one.yaml", "--json")
    found = placeto("fit", *argv, "--microbatches", microbatches)
    assert found.status == 0
    largest = found.document["largest"]
    assert largest % microbatches == 0
    assert fits(largest, memory, microbatches)
    assert not fits(largest + microbatches, memory, microbatches)
    assert found.document["fits"] == (first <= largest)
    assert len(found.document["tries"]) <= 14  # of some hundred batches
    assert f"the largest that does is {largest}" in found.err
    said = "op times of mlp on k80 are estimates; placeto calibrate --torch measures them"
    assert found.err.count(said) == 1


def test_nothing_fits(placeto):
    save_cluster(one(100), "one.yaml")
    found = placeto("fit", f"{MODELS}:mlp?batch=4", "--cluster", "one.yaml")
    assert found.status == 1
    assert "fullest device" in found.out
    assert "no batch fits, not even 1" in found.err


def test_what_fits_beside_the_gpu_alone_does_not_fit(placeto):
    ways = [Channel(f"{a}-{b}", (a,), (b,), 1e9) for a, b in (("cuda:0", "cpu"), ("cpu", "cuda:0"))]
    devices = (Device("cuda:0", "k80", 100), Device("cpu", "cpu", 2**30))
    save_cluster(Cluster("box", devices, tuple(ways)), "box.yaml")
    argv = (f"{MODELS}:mlp?batch=4", "--cluster", "box.yaml")
    assert placeto("fit", *argv, "--json").document["largest"] is None
    refused = placeto("fit", *argv, "--strategy", "data-parallel").complaint
    assert "cluster 'box' has one device beside the CPU" in refused


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
    save_cluster(one(2**20), "one.yaml")
    assert complaint in placeto("fit", *argv, "--cluster", "one.yaml").complaint
