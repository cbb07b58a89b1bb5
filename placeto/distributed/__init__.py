"""Work on many cores or machines, by Ray."""

from placeto.distributed.crew import Crew, one_a_node
from placeto.distributed.session import ray_session

__all__ = ["Crew", "one_a_node", "ray_session"]
