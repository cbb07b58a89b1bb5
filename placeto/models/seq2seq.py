"""A sequence-to-sequence network that gives every member of a sequence a device."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from placeto.models.network import masked

TANH_CONSTANT = 5.0
TEMPERATURE = 10.0

State = tuple[Tensor, Tensor]


class Memory(NamedTuple):
    """What the encoder says of a sequence's members."""

    outputs: Tensor  # (steps, batch, 2 * width)
    rows: Tensor  # (batch, steps, 2 * width) the same; once where the whole batch has the same
    keys: Tensor  # (batch, 2 * width, steps) what the decoder's outputs are matched with, as `rows`


class Seq2Seq(nn.Module):
    r"""An LSTM reads the sequence, another one with attention emits a device for each member.

    The device-placement network of Mirhoseini et al. (2017, arXiv:1706.04972, section 3.3; 2018).
    The encoder reads in both directions. At step t the decoder reads the embedding of the device
    chosen at t - 1 and the encoder's output :math:`m_t` for the member that it places; its own
    output :math:`h_t` attends to all outputs of the encoder, and both give the logits:

    .. math:: a = \mathrm{softmax}_s(h_t^T W m_s), \quad
        5 \tanh(V [h_t, \textstyle\sum_s a_s m_s] / 10)

    The papers score attention by a small network (Bahdanau et al. 2015) and not by a product
    (Luong et al. 2015, arXiv:1508.04025), which is as many times cheaper as the network is wide.
    Attention is not fed back, so that where the devices are known all steps are one call. Bounds
    and temperature of the logits are those of the paper of 2018; they keep up exploration (Bello et
    al. 2016, arXiv:1611.09940).

    Shapes:
        inputs: x (steps, batch, inputs), allowed (steps, batch, num_devices) where each member may
            be, devices (steps, batch) that were chosen
        output: (steps, batch, num_devices) log-probabilities
    """

    def __init__(self, inputs: int, num_devices: int, width: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(inputs, width, bidirectional=True)
        self.devices = nn.Embedding(num_devices + 1, width)  # the last one: none was chosen yet
        self.decoder = nn.LSTM(3 * width, 2 * width)
        self.match = nn.Linear(2 * width, 2 * width, bias=False)
        self.head = nn.Linear(4 * width, num_devices)

    def forward(self, x: Tensor, allowed: Tensor, devices: Tensor) -> Tensor:
        """Log-probabilities of each step's devices, given those chosen before it."""
        memory, state = self._encode(x, devices.shape[1])
        none = torch.full_like(devices[:1], self.devices.num_embeddings - 1)
        previous = torch.cat([none, devices[:-1]])
        logits, _ = self._decode(memory, memory.outputs, previous, state)
        return masked(logits, allowed).log_softmax(dim=-1)

    @torch.no_grad()
    def draw(self, x: Tensor, allowed: Tensor, noise: Tensor) -> Tensor:
        """(steps, batch) devices, the largest of their logits and noise each.

        The (steps, batch, num_devices) noise is Gumbel's for draws, 0 for the likeliest devices.
        """
        batch = noise.shape[1]
        memory, state = self._encode(x, batch)
        device = torch.full((1, batch), self.devices.num_embeddings - 1)
        chosen = []
        for now, luck in zip(memory.outputs[:, None], masked(noise, allowed), strict=True):
            logits, state = self._decode(memory, now, device, state)
            device = (logits + luck).argmax(dim=-1)
            chosen.append(device)
        return torch.cat(chosen)

    def _encode(self, x: Tensor, batch: int) -> tuple[Memory, State]:
        """What the encoder says of the members, and the decoder's first state."""
        outputs, (h, c) = self.encoder(x)
        rows = outputs.transpose(0, 1)
        memory = Memory(outputs.expand(-1, batch, -1), rows, self.match(rows).transpose(1, 2))
        h, c = (last.transpose(0, 1).reshape(1, x.shape[1], -1) for last in (h, c))
        return memory, (h.repeat(1, batch // x.shape[1], 1), c.repeat(1, batch // x.shape[1], 1))

    def _decode(
        self, memory: Memory, members: Tensor, previous: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Logits of n successive steps, and the state after them.

        Args:
            memory: of all members.
            members: (n, batch, 2 * width) the encoder's outputs for those that are placed.
            previous: (n, batch) devices chosen just before each of these.
            state: of the decoder before them.
        """
        h, state = self.decoder(torch.cat([self.devices(previous), members], dim=-1), state)
        shared = len(memory.rows) == 1
        asking = h.flatten(0, 1)[None] if shared else h.transpose(0, 1)
        weights = torch.bmm(asking, memory.keys).softmax(dim=-1)
        heard = torch.bmm(weights, memory.rows)
        context = heard.view_as(h) if shared else heard.transpose(0, 1)
        logits = self.head(torch.cat([h, context], dim=-1))
        return TANH_CONSTANT * (logits / TEMPERATURE).tanh(), state
