"""A configuration of every agent, and what it trains on."""

from placeto.envs import generator
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.models.placeto.settings import PlacetoConfig
from placeto.models.placeto_2019.settings import Placeto2019Config

TOYS = [generator.fork(), generator.diamond()]
RANDOM = {"initial_placement": "random", "traversal": "random"}
AGENTS = {
    "placeto-2019": (TOYS, Placeto2019Config(updates=4, episodes=5, rounds=1, width=4, **RANDOM)),
    "placeto by ppo": (
        TOYS,
        Placeto2019Config(updates=4, episodes=5, rounds=1, width=4, algorithm="ppo", epochs=2),
    ),
    "colocrl": (TOYS[:1], ColocRLConfig(updates=4, episodes=5, width=4)),
    "hierarchical": (TOYS[:1], HierarchicalConfig(updates=4, episodes=5, width=4, clusters=3)),
    "placeto": (TOYS, PlacetoConfig(updates=4, episodes=5, imitation=0.0)),
}
