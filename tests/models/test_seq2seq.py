import pytest
import torch

from placeto.models.seq2seq import Seq2Seq

STEPS, BATCH, INPUTS, DEVICES = 7, 4, 3, 3


@pytest.fixture
def network():
    torch.manual_seed(0)
    network = Seq2Seq(INPUTS, DEVICES, width=5).double()
    with torch.no_grad():  # far from uniform, so that what should differ does
        network.head.weight.mul_(40)
    return network


def given(batch):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(STEPS, batch, INPUTS, generator=generator, dtype=torch.float64)
    devices = torch.randint(DEVICES, (STEPS, BATCH), generator=generator)
    allowed = torch.rand(STEPS, BATCH, DEVICES, generator=generator) < 0.7
    allowed[torch.arange(STEPS)[:, None], torch.arange(BATCH), devices] = True
    return x, allowed, devices


@pytest.mark.parametrize("batch", [1, BATCH])
def test_batch_is_its_members(network, batch):
    x, allowed, devices = given(batch)
    log = network(x, allowed, devices)
    assert len(torch.unique(log, dim=1)[0]) == BATCH
    for row in range(BATCH):
        own = slice(row, row + 1)
        alone = network(x[:, own] if batch > 1 else x, allowed[:, own], devices[:, own])
        torch.testing.assert_close(alone, log[:, own])


@pytest.mark.parametrize("batch", [1, BATCH])
def test_chances_add_up_and_forbidden_devices_have_none(network, batch):
    x, allowed, devices = given(batch)
    chances = network(x, allowed, devices).exp()
    torch.testing.assert_close(chances.sum(dim=-1), torch.ones(STEPS, BATCH, dtype=torch.float64))
    assert not chances[~allowed].any()
    assert (chances[allowed] > 0).all()


@pytest.mark.parametrize("batch", [1, BATCH])
def test_draws_are_of_the_chances_that_are_told_of_them(network, batch):
    x, allowed, _ = given(batch)
    noise = torch.randn(STEPS, BATCH, DEVICES, dtype=torch.float64).exponential_().log().neg()
    drawn = network.draw(x, allowed, noise)
    with torch.no_grad():
        log = network(x, allowed, drawn)
    assert torch.equal((log + noise).argmax(dim=-1), drawn)
    likeliest = network.draw(x, allowed, torch.zeros_like(noise))
    assert not torch.equal(likeliest, drawn)
    with torch.no_grad():
        assert torch.equal(network(x, allowed, likeliest).argmax(dim=-1), likeliest)


def test_a_step_knows_the_devices_before_it_and_the_whole_sequence(network):
    x, _, devices = given(BATCH)
    allowed = torch.ones(STEPS, BATCH, DEVICES, dtype=torch.bool)
    before = network(x, allowed, devices)
    other = devices.clone()
    other[3] = (other[3] + 1) % DEVICES
    changed = (network(x, allowed, other) != before).any(dim=-1).all(dim=1)
    assert changed.tolist() == [False] * 4 + [True] * 3
    x[-1] += 1  # read by the encoder's way back, and by attention
    assert (network(x, allowed, devices) != before).any(dim=-1).all()
