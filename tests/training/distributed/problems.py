"""A configuration of every agent, and what it trains on."""

from placeto.envs import generator
from placeto.training.config import (
    ColocRLConfig,
    HierarchicalConfig,
    PairwiseConfig,
    TrainingConfig,
)

TOYS = [generator.fork(), generator.diamond()]
RANDOM = {"initial_placement": "random", "traversal": "random"}
AGENTS = {
    "placeto": (TOYS, TrainingConfig(updates=4, episodes=5, rounds=1, width=4, **RANDOM)),
    "placeto by ppo": (
        TOYS,
        TrainingConfig(updates=4, episodes=5, rounds=1, width=4, algorithm="ppo", epochs=2),
    ),
    "colocrl": (TOYS[:1], ColocRLConfig(updates=4, episodes=5, width=4)),
    "hierarchical": (TOYS[:1], HierarchicalConfig(updates=4, episodes=5, width=4, clusters=3)),
    "pairwise": (TOYS, PairwiseConfig(updates=4, episodes=5, imitation=0.0)),
}
