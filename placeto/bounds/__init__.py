"""Step times that no placement can beat, and proofs that none fits in memory."""

from placeto.bounds.bound import critical_path, lower_bound
from placeto.bounds.memory import infeasibility
from placeto.bounds.work import throughput_bound, work_bound

__all__ = ["critical_path", "infeasibility", "lower_bound", "throughput_bound", "work_bound"]
