"""RLlib's new API stack on `DevicePlacement-v0`: Placeto's policy as an `RLModule`."""

from typing import Any

from gymnasium import spaces
from torch import Tensor

from placeto.models.placeto_2019.network import Placeto2019Shape
from placeto.models.placeto_2019.observed import ObservedPolicy
from placeto.support.errors import PlacetoError

try:
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis import ValueFunctionAPI
    from ray.rllib.core.rl_module.torch import TorchRLModule
except ModuleNotFoundError as error:
    raise PlacetoError(
        f"placeto.integrations.rllib needs RLlib ({error}); pip install 'placeto[ray]'"
    ) from error

ADDED = {"vf_share_layers"}  # what algorithms of RLlib put into every model_config


class PlacetoRLModule(TorchRLModule, ValueFunctionAPI):
    """Placeto's policy, an `ObservedPolicy`, for PPO and other algorithms with a value.

    For `config.rl_module(rl_module_spec=RLModuleSpec(module_class=PlacetoRLModule))`. Its
    `model_config` has fields of `placeto.models.placeto_2019.network.Placeto2019Shape`, such as
    `{"rounds": 4}`. Devices that `action_mask` forbids have a probability of zero.
    """

    def setup(self) -> None:
        """Makes the network for the spaces of the environment."""
        actions = self.action_space
        assert isinstance(actions, spaces.Discrete) and isinstance(self.model_config, dict)
        shape = {key: self.model_config[key] for key in self.model_config if key not in ADDED}
        self.network = ObservedPolicy(Placeto2019Shape(num_devices=int(actions.n), **shape))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        logits, _ = self.network(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        logits, values = self.network(batch[Columns.OBS])
        # The loss asks for the values of this batch: `compute_values` gets them back.
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        """(batch,) values; those of `_forward_train` where they are handed on."""
        if embeddings is not None:
            return embeddings
        _, values = self.network(batch[Columns.OBS])
        assert isinstance(values, Tensor)
        return values
