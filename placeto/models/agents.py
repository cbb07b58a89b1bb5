"""Every agent by its name."""

from placeto.models import colocrl, hierarchical, placeto, placeto_2019
from placeto.models.kind import AgentKind
from placeto.models.settings import LearningConfig
from placeto.support.errors import PlacetoError

AGENTS = {
    kind.name: kind for kind in (placeto.KIND, placeto_2019.KIND, colocrl.KIND, hierarchical.KIND)
}


def find_agent(name: str) -> AgentKind:
    """The agent of a name.

    Raises:
        PlacetoError: there is none.
    """
    if name not in AGENTS:
        raise PlacetoError(f"there is no agent {name!r}; agents: {', '.join(AGENTS)}")
    return AGENTS[name]


def agent_of(config: LearningConfig) -> AgentKind:
    """The agent that a configuration is of."""
    return AGENTS[config.agent]
