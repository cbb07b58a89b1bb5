"""What tells one agent from another, for all that trains, stores or places."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from placeto.models.settings import LearningConfig, Settings
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.agent import Agent, Teacher
    from placeto.models.placeto.play import CompiledPolicy


@dataclass(frozen=True)
class AgentKind:
    """An agent by its name.

    Attributes:
        config: its settings; their `agent` is its name.
        network: those of them that make the network.
        agent: its class, as `module:class`.
        policy: the class of its network, likewise; None where a stored policy is of no use but for
            the graph that it was trained on.
        any_cluster: whether one policy is for any number of devices.
        guide: makes its network ready to be asked by compiled searches about a problem; None where
            it does not score devices by the present schedule.
        imitates: whether the first updates imitate what a teacher gives.
        reads_schedules: whether it looks at simulated schedules, and cannot learn from measured
            step times.
    """

    config: type[LearningConfig]
    network: type[Settings]
    agent: str
    policy: str | None = None
    any_cluster: bool = False
    guide: "Callable[[Any, PlacementProblem], CompiledPolicy] | None" = None
    imitates: bool = False
    reads_schedules: bool = False

    @property
    def name(self) -> str:
        """What `--agent` calls it, and `policy.json`."""
        return self.config.agent

    def make(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        evaluate: Evaluator,
        teacher: "Teacher | None" = None,
    ) -> "Agent[Any]":
        """An agent for some problems, its network drawn from torch's generator; see its class.

        Raises:
            PlacetoError: it cannot be trained on these together.
        """
        teachers = [teacher] if self.imitates else []
        made: Agent[Any] = resolve_name(self.agent)(problems, config, evaluate, *teachers)
        return made
