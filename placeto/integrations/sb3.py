"""Stable-Baselines3 on `DevicePlacement-v0`: a features extractor for `MultiInputPolicy`."""

from typing import Any

from gymnasium import spaces
from torch import Tensor

from placeto.errors import PlacetoError
from placeto.models.observed import read_observations
from placeto.models.policy import GraphReader, PolicyConfig

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

    Args:
        observation_space: of the environment.
        **shape: fields of `placeto.models.policy.PolicyConfig`, such as `rounds=4`, from
            `features_extractor_kwargs`.

    Shapes:
        inputs: the observations, each (batch, ...), but `current_node` one-hot, (batch, max_groups)
            or (batch, 1, max_groups), as Stable-Baselines3 hands on what is discrete
        output: (batch, features_dim)
    """

    def __init__(self, observation_space: spaces.Dict, **shape: Any) -> None:
        devices = observation_space["action_mask"].shape
        assert devices is not None
        reader = GraphReader(PolicyConfig(num_devices=devices[0], **shape))
        super().__init__(observation_space, reader.summary_width)
        self.reader = reader

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Reads a batch."""
        current = observations["current_node"].argmax(dim=-1).flatten()
        return read_observations(self.reader, observations | {"current_node": current})
