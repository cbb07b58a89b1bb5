"""The hierarchical planner's agent (Mirhoseini et al., ICLR 2018)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from placeto.models.agent import Wanted
from placeto.models.hierarchical.network import HierarchicalPolicy, HierarchicalShape
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.models.network import entropy
from placeto.models.one_shot import OneShotAgent, Shots
from placeto.support.arrays import Ints


@dataclass(frozen=True, eq=False)
class Clustering:
    """Some groupings, and the devices of their clusters."""

    AXES: ClassVar = {"cluster": 0, "devices": 1}  # along which the episodes are

    cluster: Tensor  # (episodes, num_groups) of each group, groups in topological order
    devices: Tensor  # (clusters, episodes) of each cluster


class HierarchicalAgent(OneShotAgent[Clustering]):
    """Puts the groups into clusters, then gives each cluster a device.

    Both networks go up the policy gradient of the paper (equations 3 to 6), with one placement for
    each grouping: the gradient of log p(grouping) + log p(devices | grouping), times the advantage.
    A cluster may be given a device that one of its groups may be on; a group that may not be there
    goes where it runs fastest of the devices that it may be on. An empty cluster is given device 0:
    a choice without effect would only blur the gradient.
    """

    network: HierarchicalPolicy
    _config: HierarchicalConfig

    def _policy(self, **sizes: int) -> HierarchicalPolicy:
        self._clusters = min(self._config.clusters, self.problem.num_groups)
        return HierarchicalPolicy(HierarchicalShape(clusters=self._clusters, **sizes))

    @torch.no_grad()
    def draw(self, wanted: Wanted, rng: np.random.Generator) -> tuple[Clustering, Ints]:
        """Draws a cluster for each group, then a device for each cluster."""
        problem, part = self.problem, wanted.part
        lots = wanted.noise(rng, wanted.episodes, problem.num_groups, self._clusters)[part]
        luck = wanted.noise(rng, self._clusters, wanted.episodes, problem.num_devices)[:, part]
        logits = self.network.grouper(self.attributes) + torch.from_numpy(lots)
        cluster = logits.argmax(dim=-1)
        x = self.network.embed(self.attributes, cluster)
        devices = self.network.placer.draw(x, self._may(cluster), torch.from_numpy(luck))
        placed: Ints = devices.T.gather(1, cluster).numpy()[:, problem.group_position]
        may = problem.allowed[np.arange(problem.num_groups), placed]
        fastest = np.where(problem.allowed, problem.group_seconds, np.inf).argmin(axis=1)
        return Clustering(cluster, devices), np.where(may, placed, fastest)

    def terms(self, index: int, played: Shots[Clustering], part: slice) -> tuple[Tensor, Tensor]:
        """Of all clusters and devices together; the entropy of one choice on average."""
        cluster, devices = played.choices.cluster[part], played.choices.devices[:, part]
        grouping = self.network.grouper(self.attributes).log_softmax(dim=-1)
        groups = torch.arange(cluster.shape[1])
        x = self.network.embed(self.attributes, cluster)
        placing = self.network.placer(x, self._may(cluster), devices)
        taken = grouping[groups, cluster].sum(dim=1)
        taken = taken + placing.gather(2, devices[:, :, None]).sum(dim=(0, 2))
        uncertainty = entropy(placing).sum(dim=0) + entropy(grouping).sum()
        return taken, uncertainty / (len(grouping) + len(placing))

    def _may(self, cluster: Tensor) -> Tensor:
        """(clusters, batch, num_devices) which devices the clusters of groupings may have."""
        member = F.one_hot(cluster, self._clusters).transpose(1, 2).float()
        may = member @ self._allowed.float() > 0
        may[..., 0] |= member.sum(dim=-1) == 0
        return may.transpose(0, 1)
