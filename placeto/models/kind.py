"""What tells one agent from another, for all that trains, stores or places by any of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.models.settings import LearningConfig, Settings
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.agent import Agent, Teacher
    from placeto.models.network import Network
    from placeto.models.placeto.play import CompiledPolicy
    from placeto.models.stored import StoredPolicy

MakeAgent = Callable[
    [Sequence[PlacementProblem], Any, Evaluator, "Teacher | None"],
    "Agent[Any]",
]


@dataclass(frozen=True)
class AgentKind:
    """An agent by its name.

    Attributes:
        name: what `--agent` calls it, and `policy.json`.
        config: its settings; their `agent` is its name.
        network: those of them that make the network.
        make: an agent for some problems, its network drawn from torch's generator, by its settings
            and what turns placements into step times; and, for agents that imitate, with what
            gives them the placements. `PlacetoError` if it cannot be trained on these together.
        load: the network of a stored policy; None for one that is of no use but for the graph that
            it was trained on.
        any_cluster: whether one policy is for any number of devices.
        guide: makes its network ready to be asked by compiled searches about a problem; None where
            it does not score devices by the present schedule.
        imitates: whether the first updates imitate what a teacher gives.
        reads_schedules: whether it looks at simulated schedules, and cannot learn from measured
            step times.
    """

    name: str
    config: type[LearningConfig]
    network: type[Settings]
    make: MakeAgent
    load: "Callable[[StoredPolicy], Network] | None" = None
    any_cluster: bool = False
    guide: "Callable[[Any, PlacementProblem], CompiledPolicy] | None" = None
    imitates: bool = False
    reads_schedules: bool = False
