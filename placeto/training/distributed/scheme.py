"""How the work of a training run is shared among processes."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig
from placeto.support.errors import PlacetoError

Mode = Literal["synchronous", "asynchronous"]
Evaluation = Literal["simulate", "measure"]


@dataclass(frozen=True)
class Scheme:
    """Who plays, and who learns.

    Attributes:
        workers: of each controller: they play its episodes, each its share of every update's.
        mode: `synchronous`: one controller, this process, waits for all episodes of an update
            before it takes the gradient step (as the workers of Placeto). `asynchronous`: each
            controller computes gradients by itself, on what the parameters were when it began, and
            this process applies them as they come (as the controllers and the parameter server of
            ColocRL).
        controllers: how many.
        address: of a Ray cluster, or `auto`; None for this machine.
        evaluator: whether workers `simulate` placements or `measure` them on real devices.

    Raises:
        PlacetoError: a setting that is none, or goes with another mode.
    """

    workers: int = 1
    mode: Mode = "synchronous"
    controllers: int = 1
    address: str | None = None
    evaluator: Evaluation = "simulate"

    def __post_init__(self) -> None:
        for name in ("workers", "controllers"):
            if (number := getattr(self, name)) < 1:
                raise PlacetoError(f"{name} is {number}, expected a whole number from 1")
        for name, choices in (("mode", get_args(Mode)), ("evaluator", get_args(Evaluation))):
            if (value := getattr(self, name)) not in choices:
                raise PlacetoError(f"{name} is {value!r}, expected one of {', '.join(choices)}")
        if self.controllers > 1 and self.mode == "synchronous":
            raise PlacetoError(
                f"controllers is {self.controllers}, but synchronous training has one; several go "
                "with mode asynchronous"
            )

    def check(self, config: LearningConfig) -> None:
        """Makes sure that an agent can be trained so.

        Raises:
            PlacetoError: it cannot.
        """
        if self.workers > config.episodes:
            raise PlacetoError(
                f"workers is {self.workers}, but an update has {config.episodes} episodes to "
                "share; give fewer workers or more episodes"
            )
        agent = agent_of(config)
        if self.evaluator == "measure" and agent.reads_schedules:
            raise PlacetoError(
                f"{agent.name} reads simulated schedules; it cannot be trained on measured step "
                "times"
            )
        if self.mode == "synchronous":
            return
        if agent.imitates:
            raise PlacetoError(
                f"{agent.name} imitates a search before it learns from its episodes, in one order; "
                "it is trained with mode synchronous"
            )
        if config.algorithm == "ppo":
            raise PlacetoError(
                "algorithm ppo takes several gradient steps from one policy; mode asynchronous, "
                "whose parameters change in between, goes with reinforce"
            )

    def document(self) -> dict[str, Any]:
        """What of it names a run: all that the result depends on. It is empty where nothing is.

        The number of workers is not in it: it may change when a run goes on.
        """
        chosen: dict[str, Any] = {}
        if self.mode == "asynchronous":
            chosen |= {"mode": self.mode, "controllers": self.controllers}
        if self.evaluator != "simulate":
            chosen |= {"evaluator": self.evaluator}
        return {"scheme": chosen} if chosen else {}
