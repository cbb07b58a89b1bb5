"""Training with many processes: rollout workers, controllers, a parameter server."""

from placeto.training.distributed.run import Scheme, train_with_workers

__all__ = ["Scheme", "train_with_workers"]
