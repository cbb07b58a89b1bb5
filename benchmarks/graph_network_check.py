# does compiled code agree with torch?
import numpy as np, torch
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.zoo.families import members
from placeto.zoo.folders import synthetic_member
from placeto.models.placeto.settings import PlacetoConfig
from placeto.training import Trainer
g = synthetic_member(members("layered")[3])
p = PlacementProblem(g, load_cluster("k80x4"), 24)
t = Trainer([p], PlacetoConfig(updates=3, seed=0, pooling=8))
for q in t.policy.parameters(): torch.nn.init.normal_(q, 0, 0.3)
played = t.roll_out(0, episodes=3, greedy=True)
# actions must be argmax of torch logits
log = []
orig = t.policy.forward
def fwd(*a):
    r = orig(*a); log.append(r.detach()); return r
t.policy.forward = fwd
term, ent = t.agent.terms(0, played, slice(None))
l = torch.cat(log)
a = torch.from_numpy(played.actions).flatten()
print((l.argmax(1) == a).float().mean(), len(a), term.shape)
# slack: critical ops
print(played.nodes[0, 0, :, [1, 2, 3, 4]].T[:8])
rep = t.step(); print(rep)
