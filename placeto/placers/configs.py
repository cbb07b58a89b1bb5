"""How placers are configured, free of torch: the registry shows it before anything is trained."""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.search.settings import (
    COARSE_GROUPS,
    NO_POLICY,
    USUAL_POLICY,
    SearchConfig,
    check_least,
)
from placeto.support.errors import PlacetoError

Decoding = Literal["greedy", "sampling", "starts", "mirrored", "beam", "active"]

# Schedules follow the clock, the seed comes of the placer's generator, and no run is left.
BY_THE_PLACER = ("updates", "seed", "checkpoint_every")
_NAMES = {bool: "true or false", int: "a whole number", float: "a finite number", NoneType: "none"}


@dataclass(frozen=True)
class Configurable:
    """The configuration of a placer.

    Attributes:
        default: a frozen dataclass, whose fields are bool, int, float, None or literal strings.
        fixed: fields that are no settings: the placer fills them in itself, or has no use for them.
    """

    default: Any
    fixed: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, object]:
        """Name and default of each setting."""
        names = (field.name for field in fields(self.default))
        return {name: getattr(self.default, name) for name in names if name not in self.fixed}

    def configured(self, settings: Mapping[str, object]) -> Any:
        """The configuration with other settings; `PlacetoError` where these cannot be."""
        for name, value in settings.items():
            options = self._options(name)
            if not any(_is_a(value, option) for option in options):
                expected = " or ".join(_NAMES.get(option, option) for option in options)
                raise PlacetoError(f"{name} is {value!r}, expected {expected}")
        return replace(self.default, **settings)

    def read(self, name: str, text: str) -> object:
        """A setting's value from text: as its type writes it, else the text itself."""
        for option in self._options(name):
            if option is NoneType and text == "none":
                return None
            if option is bool and text in ("true", "false"):
                return text == "true"
            if option in (int, float):
                with contextlib.suppress(ValueError):
                    return option(text)
        return text

    def _options(self, name: str) -> list[Any]:
        """Types and strings that a setting's value is one of; `PlacetoError` if it is none."""
        if name not in self.settings:
            known = ", ".join(self.settings)
            raise PlacetoError(f"there is no setting {name!r}; settings: {known}")
        kind = get_type_hints(type(self.default))[name]
        return list(get_args(kind)) or [kind]


def _is_a(value: object, option: Any) -> bool:
    if isinstance(option, str):
        return type(value) is str and value == option
    if option is float:
        return type(value) is int or (isinstance(value, float) and math.isfinite(value))
    return type(value) is option


@dataclass(frozen=True)
class Placeto2019PlacerConfig(Placeto2019Config):
    """Settings of the placer `placeto-2019`: of a training that is short.

    Attributes:
        policy: a run directory of `placeto train --agent placeto-2019` whose policy is trained
            further; its network is as it was made, whatever the settings of it say. `none` to begin
            with a fresh one.
        initial_placement: where episodes start: `best` (at first the best of one device, the
            expert's and earliest finish; then the best that was met) or, throughout, `first`,
            `random` or `expert`.
    """

    policy: str = NO_POLICY
    episodes: int = 8
    baseline_episodes: int = 16
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-4
    entropy_bonus: float = 0.05
    rounds: int = 2
    initial_placement: Literal["best", "first", "random", "expert"] = "best"  # type: ignore[assignment]


@dataclass(frozen=True)
class PlacetoPlacerConfig:
    """Settings of the placer `placeto`.

    Attributes:
        policy: a run directory or a bundled policy; `usual` for the one that ships for such steps:
            `placeto`, or `placeto-pipelined` where there are several microbatches.
        samples: episodes with drawn devices at once; 0 to take the likeliest devices only, and
            `fine_tune` 0 if nothing is to be trained either.
        batches: of samples; 0 until the budget ends, with fewer samples where these would take
            long.
        coarse_groups: of more groups than this, several are placed together; the best such
            placement is refined by sweeps over the groups as they are.
        fine_tune: share of the budget after the greedy sweeps, at the end, in which the policy is
            trained further, and played between updates; 0 for none. With a number of batches there
            is none.
        learning_rate: of that, first value.
        decoding: how placements are drawn from the policy: `greedy` sweeps alone; after these
            `sampling`, `starts`, `mirrored` or `beam` until the budget ends (see
            `search.decoding`); or `active`: starts, then what `fine_tune` says (active search;
            Bello et al. 2017, arXiv:1611.09940).
        temperature: of what is drawn: 1 as likely as the policy has it, less for likelier devices.
    """

    policy: str = USUAL_POLICY
    samples: int = 16
    batches: int = 0
    coarse_groups: int = COARSE_GROUPS
    fine_tune: float = 0.8
    learning_rate: float = 1e-3
    decoding: Decoding = "active"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_least(self, samples=0, batches=0, coarse_groups=1)
        if not 0 < self.temperature < math.inf:
            raise PlacetoError(f"temperature is {self.temperature}, expected more than 0")
        if not 0 <= self.fine_tune <= 1:
            raise PlacetoError(f"fine_tune is {self.fine_tune}, expected from 0 to 1")
        if not self.learning_rate > 0:
            raise PlacetoError(f"learning_rate is {self.learning_rate}, expected more than 0")

    @property
    def trains(self) -> bool:
        """Whether the policy is trained further."""
        return self.decoding == "active" and self.fine_tune > 0 and not self.batches


AUTO = Configurable(SearchConfig())
ANNEALING = Configurable(
    # Hotter it ends worse: it has no levels to leave its start by.
    SearchConfig(policy=NO_POLICY, coarse_groups=None, first_temperature=0.01),
    ("policy", "samples", "coarse_groups", "coarse_ratio", "coarse_share", "refining_temperature"),
)
COLOCRL = Configurable(ColocRLConfig(), BY_THE_PLACER)
HIERARCHICAL = Configurable(HierarchicalConfig(), BY_THE_PLACER)
PLACETO_2019 = Configurable(Placeto2019PlacerConfig(), BY_THE_PLACER)
PLACETO = Configurable(PlacetoPlacerConfig())
