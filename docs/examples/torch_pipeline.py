"""Trains a model in a pipeline as a plan says, one process a stage.

placeto extract 'gpt.py:make?batch=16&microbatches=8&loss=crossentropy' -o gpt.json.gz
placeto place gpt.json.gz --cluster my-box.yaml --pipeline plan.json
torchrun --nproc-per-node 2 torch_pipeline.py gpt plan.json                 # two CPUs, gloo
torchrun --nproc-per-node 2 torch_pipeline.py gpt plan.json --device cuda   # cuda:0, cuda:1, nccl
"""

import argparse
import importlib
import os
import time

import torch
import torch.distributed as dist

import placeto


def main():
    """Runs some steps; with --check, compares the first one with the whole model's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("net", help="a Python file beside this one: gpt or resnet")
    parser.add_argument("plan")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--save", help="folder of the weights, of each process those that it has")
    wanted = parser.parse_args()
    net = importlib.import_module(wanted.net)
    plan = placeto.load_pipeline(wanted.plan)
    rank, processes = int(os.environ["RANK"]), plan.processes
    if int(os.environ["WORLD_SIZE"]) != processes:
        raise SystemExit(f"the plan is for {processes}: torchrun --nproc-per-node {processes} …")
    device = torch.device("cpu")
    if wanted.device == "cuda":
        device = torch.device(plan.stages[rank].device)
        torch.cuda.set_device(device)  # before the group is made, or all are on the first GPU
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")

    torch.manual_seed(0)  # the same weights in all processes
    model, examples = net.make(batch=wanted.batch)
    target = net.targets(examples)
    wanted_gradients = {}
    if wanted.check:
        whole = net.loss(model(examples), target)
        whole.backward()
        wanted_gradients = {name: each.grad for name, each in model.named_parameters()}
        model.zero_grad(set_to_none=True)

    split = placeto.pipeline_stages(model, plan)
    pipe = split.pipe(examples.chunk(plan.microbatches)[0])
    stages = [pipe.build_stage(number, device) for number in split.numbers(rank)]
    several = plan.schedule == "interleaved"
    schedule = split.schedule(stages if several else stages[0], plan.microbatches, loss_fn=net.loss)
    parameters = [each for stage in stages for each in stage.submod.named_parameters()]
    optimizer = torch.optim.SGD([each for _, each in parameters], lr=0.01, momentum=0.9)
    examples, target = examples.to(device), target.to(device)
    for step in range(wanted.steps):
        began, losses = time.perf_counter(), []
        optimizer.zero_grad(set_to_none=True)
        inputs = (examples,) if rank == 0 else ()
        last = {"target": target, "losses": losses} if rank == processes - 1 else {}
        split.step(schedule, *inputs, **last)
        if wanted.check and step == 0:
            for name, each in parameters:
                torch.testing.assert_close(
                    each.grad.cpu(), wanted_gradients.pop(name), rtol=1e-5, atol=1e-5
                )
            if losses:
                mean = torch.stack(losses).mean().cpu()
                torch.testing.assert_close(mean, whole.detach(), rtol=1e-5, atol=1e-5)
            print(f"process {rank}: as the whole model; others have {len(wanted_gradients)}")
        optimizer.step()
        if losses:
            seconds = time.perf_counter() - began
            print(f"step {step}: loss {torch.stack(losses).mean():.4f}, {1e3 * seconds:.0f} ms")
    if wanted.save:
        weights = {name: each.detach().cpu() for name, each in parameters}
        torch.save(weights, os.path.join(wanted.save, f"weights-{rank}.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
