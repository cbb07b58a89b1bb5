import sys, time, json
import numpy as np, torch, numba
numba.set_num_threads(1); torch.set_num_threads(1)
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.zoo.families import members
from placeto.zoo.folders import synthetic_member
from placeto.placers.registry import annealed, place
from placeto.models.placeto.settings import PlacetoConfig
from placeto.training import Trainer
mode, seed, updates, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rounds, pooling = {"none": (0, 0), "messages": (2, 0), "pool": (0, 8), "both": (2, 8)}[mode]
def synthetic(split, count):
    return [synthetic_member(m) for f in ("layered", "series_parallel", "random")
            for m in [m for m in members(f) if m.split == split][:count]]
train = [load_graph(n) for n in ("cifar10_small", "nmt_small", "ptb_small", "transformer_small", "rnnlm", "nmt", "resnet50", "inception_v3")] + synthetic("train", 4)
test = [load_graph(n) for n in ("nasnet", "nmt_4", "transformer", "nmt_8")] + synthetic("test", 3)
GROUPS = 64
tr = [PlacementProblem(g, load_cluster(c), GROUPS) for g in train for c in ("k80x2", "k80x4")]
te = [PlacementProblem(g, load_cluster(c), GROUPS) for g in test for c in ("k80x2", "k80x4", "k80x8")]
config = PlacetoConfig(updates=updates, seed=seed, rounds=rounds, pooling=pooling, episodes=8)
began = time.time()
trainer = Trainer(tr, config, teacher=annealed)
def evaluate(trainer):
    t = Trainer(te, config)
    t.policy.load_state_dict(trainer.policy.state_dict())
    greedy, best = [], []
    began = time.time(); sims = 0
    for i, p in enumerate(te):
        single = place(p, "single").step_time
        g = t.roll_out(i, episodes=1, greedy=True)
        greedy.append(np.log(g.best_cost.min() / single))
        t.rng = np.random.default_rng(100 + i)
        b = t.roll_out(i, episodes=16)
        best.append(np.log(min(b.best_cost.min(), g.best_cost.min()) / single))
    return float(np.exp(np.mean(greedy))), float(np.exp(np.mean(best))), time.time() - began
for u in range(updates):
    r = trainer.step()
    if (u + 1) % 150 == 0 or u + 1 == updates:
        g, b, s = evaluate(trainer)
        line = dict(mode=mode, seed=seed, update=u + 1, greedy=g, best16=b, eval_s=round(s, 1), train_s=round(time.time() - began, 1))
        print(json.dumps(line), flush=True)
        open(out, "a").write(json.dumps(line) + "\n")
