"""Training with many processes: rollout workers, controllers, a parameter server."""

from placeto.training.distributed.run import train_with_workers
from placeto.training.distributed.scheme import Scheme

__all__ = ["Scheme", "train_with_workers"]
