"""Stable-Baselines3 on `DevicePlacement-v0`: a features extractor for `MultiInputPolicy`."""

from typing import Any

from gymnasium import spaces
from torch import Tensor

from placeto.models.placeto_2019.network import GraphReader, Placeto2019Shape
from placeto.models.placeto_2019.observed import read_observations
from placeto.support.errors import PlacetoError

try:
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
except ModuleNotFoundError as error:
    raise PlacetoError(
        f"placeto.integrations.sb3 needs Stable-Baselines3 ({error}); pip install 'placeto[sb3]'"
    ) from error


class GraphExtractor(BaseFeaturesExtractor):
    """Reads the group graph around the current group, as Placeto's policy does.

    For `policy_kwargs={"features_extractor_class": GraphExtractor}` of any algorithm of
    Stable-Baselines3 or sb3-contrib with `MultiInputPolicy`, whose own layers follow it.

    Its `features_extractor_kwargs` are fields of
    `placeto.models.placeto_2019.network.Placeto2019Shape`, such as `rounds=4`.

    Shapes:
        inputs: the observations, each (batch, ...), but `current_node` one-hot, (batch, max_groups)
            or (batch, 1, max_groups), as Stable-Baselines3 hands on what is discrete
        output: (batch, features_dim)
    """

    def __init__(self, observation_space: spaces.Dict, **shape: Any) -> None:
        devices = observation_space["action_mask"].shape
        assert devices is not None
        reader = GraphReader(Placeto2019Shape(num_devices=devices[0], **shape))
        super().__init__(observation_space, reader.summary_width)
        self.reader = reader

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Reads a batch."""
        current = observations["current_node"].argmax(dim=-1).flatten()
        return read_observations(self.reader, observations | {"current_node": current})
