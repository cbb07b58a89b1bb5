"""What a process of a pipeline holds: run by `torchrun`, tensor by tensor."""

import json
import runpy
import sys
import weakref
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import placeto

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class Alive(TorchDispatchMode):
    """Counts the bytes of tensors from when an op makes them until nobody has them.

    Attributes:
        peak: most bytes.
    """

    def __init__(self, given):
        super().__init__()
        self.known, self.now, self.peak = {}, 0, 0
        self.count(given)

    def count(self, made):
        """Adds those whose storage has not been seen."""
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                key, size = id(storage), storage.nbytes()
                if key not in self.known:
                    self.known[key] = weakref.ref(
                        storage, lambda _, key=key, size=size: self.drop(key, size)
                    )
                    self.now += size
        self.peak = max(self.peak, self.now)

    def drop(self, key, size):
        """Takes away one whose storage is freed."""
        del self.known[key]
        self.now -= size

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.count(made)
        return made


def gpt(batch: int = 8):
    """The example, smaller."""
    made = runpy.run_path(str(EXAMPLES / "gpt.py"))["make"]
    return made(batch, words=2000, length=32, width=128, layers=4)


def convolutions(batch: int = 16):
    """Three convolutions, whose activations are large, and a layer whose weights are."""
    layers = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(64 * 16, 512), nn.ReLU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers), torch.randn(batch, 3, 32, 32)


def held(make, plan):
    """Bytes that this process holds at most in two steps of a plan."""
    rank = dist.get_rank()
    module, batch = make()
    target = torch.zeros(*module(batch).shape[:-1], dtype=torch.int64)
    split = placeto.pipeline_stages(module, plan)
    pipe = split.pipe(batch.chunk(plan.microbatches)[0])
    stages = [pipe.build_stage(number, torch.device("cpu")) for number in split.numbers(rank)]
    schedule = split.schedule(
        stages if len(stages) > 1 else stages[0],
        plan.microbatches,
        loss_fn=lambda scores, classes: nn.functional.cross_entropy(
            scores.flatten(0, -2), classes.flatten()
        ),
    )
    parameters = [each for stage in stages for each in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    given, named = ((batch,), {}) if rank == 0 else ((), {"target": target})
    with Alive([parameters, given, named]) as alive:
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            split.step(schedule, *given, **named)
            optimizer.step()
    return alive.peak


def main(folder):
    """Runs every plan of a folder, called as its model and schedule; writes what was held."""
    dist.init_process_group("gloo")
    models = {"gpt": gpt, "convolutions": convolutions}
    found = {
        path.name: held(models[path.name.partition("-")[0]], placeto.load_pipeline(path))
        for path in sorted(folder.glob("*-*.json"))
    }
    (folder / f"rank{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
