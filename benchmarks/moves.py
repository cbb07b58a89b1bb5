"""What a move really gains: critics with and without a graph network, on the same inputs.

python -m benchmarks.moves data FILE ; python -m benchmarks.moves train FILE MODE SEED EPOCHS OUT
"""
import sys, time, json, pickle
import numpy as np
MODE = sys.argv[1]

def make_data(path, quick=False):
    from numba import njit
    from placeto import PlacementProblem, load_cluster, load_graph, step_times, place
    from placeto.envs.features.pairs import BINS, TINY, PAIR_FEATURES, GROUP_FEATURES, busy_profile, observe, group_index
    from placeto.envs.features.groups import group_graph
    from placeto.simulation.kernel import advance
    from placeto.simulation.reduction import compiled
    from placeto.simulation.state import OPS, begin, borrowed, read, view
    from placeto.zoo.families import members
    from placeto.zoo.folders import synthetic_member
    from placeto.models.placeto.agent import disturbed

    from benchmarks.moves_schedule import look, NODE

    @njit
    def seen(c, w, states, devices, xs, ys, nodes, follower, before):
        s = view(c, states[0])
        D = len(c.device_kind)
        peak = np.empty(D, np.int64); nothing = np.empty(0)
        busy = np.empty((D, BINS + 1)); load = np.empty((D, 2))
        begin(c, devices, s); advance(c, s, 0, OPS)
        seconds = max(read(s, peak, nothing), TINY)
        busy_profile(c, w, s, seconds, busy, load)
        visited = np.ones(len(devices), np.bool_)
        for group in range(len(devices)):
            observe(c, w, s, seconds, peak, busy, load, group, visited, True, xs[group], ys[group])
        look(c, w, s, seconds, visited, busy, BINS, nodes, follower, before)
        return seconds

    def synthetic(split, count, skip=0):
        return [synthetic_member(m) for f in ("layered", "series_parallel", "random")
                for m in [m for m in members(f) if m.split == split][skip:skip + count]]
    train = [load_graph(n) for n in ("cifar10_small", "nmt_small", "ptb_small", "transformer_small", "rnnlm", "nmt", "resnet50", "inception_v3")] + synthetic("train", 22)
    test = [load_graph(n) for n in ("nasnet", "nmt_4", "transformer", "nmt_8")] + synthetic("test", 4)
    rng = np.random.default_rng(0)
    out = []
    for split, graphs, clusters in (("train", train, ("k80x2", "k80x4")), ("test", test, ("k80x2", "k80x4", "k80x8"))):
        for g in graphs:
            for cname in clusters:
                p = PlacementProblem(g, load_cluster(cname), 64)
                D, G = p.num_devices, p.num_groups
                w, red, gg = group_index(p), compiled(p), group_graph(p)
                starts = [place(p, m).devices for m in ("single", "etf", "heft", "scotch")]
                starts.append(place(p, "auto", 0.5).devices)
                states = []
                began = time.time()
                per = 30 if split == "train" else 12
                while len(states) < per:
                    x = starts[rng.integers(len(starts))]
                    for _ in range(rng.integers(0, 3)):
                        x = disturbed(p, x, rng)
                    # a local search of random moves, of which the best of a few is taken
                    for _ in range(int(rng.integers(0, 30))):
                        many = np.tile(x, (12, 1)); gs = rng.integers(G, size=12)
                        many[np.arange(12), gs] = rng.integers(D, size=12)
                        ok = p.allowed[gs, many[np.arange(12), gs]]
                        many = np.concatenate([many[ok], x[None]])
                        x = many[step_times(p, many).argmin()]
                    states.append(x)
                xs = np.zeros((per, G, D, PAIR_FEATURES), np.float32); ys = np.zeros((per, G, GROUP_FEATURES), np.float32)
                nodes = np.zeros((per, G, NODE), np.float32); fol = np.zeros((per, G), np.int64); bef = np.zeros((per, G), np.int64)
                gain = np.zeros((per, G, D), np.float32); secs = np.zeros(per)
                with borrowed(red, 1) as bufs:
                    for i, x in enumerate(states):
                        secs[i] = seen(red.compiled, w, bufs, x.astype(np.int64), xs[i], ys[i], nodes[i], fol[i], bef[i])
                        many = np.tile(x, (G * D, 1)); many[np.arange(G * D), np.repeat(np.arange(G), D)] = np.tile(np.arange(D), G)
                        allowed = p.allowed
                        t = np.full((G, D), np.inf); flat = step_times(p, many[allowed.ravel()]); t[allowed] = flat
                        gain[i] = -np.log(t / secs[i])
                assert np.abs(gain[np.arange(per)[:, None], np.arange(G), np.array(states)]).max() < 1e-6
                into = np.maximum(np.bincount(gg.target, minlength=G), 1); outd = np.maximum(np.bincount(gg.source, minlength=G), 1)
                out.append(dict(name=g.name, cluster=cname, split=split, x=xs, y=ys, nodes=nodes, fol=fol, bef=bef, gain=gain, at=np.array(states),
                                source=gg.source, target=gg.target, edge=gg.edges[:, 0], attributes=gg.attributes, into=into, out=outd,
                                work=w.fastest / w.fastest.sum(), secs=secs))
                top = gain.reshape(per, -1).max(1)
                print(split, g.name, cname, G, "best gain median %.4f, share of moves that gain %.3f" % (np.median(top), (gain > 1e-4).mean()), "%.1fs" % (time.time() - began), flush=True)
    pickle.dump(out, open(path, "wb"), protocol=4)

def train(path, mode, seed, epochs, outfile):
    import torch
    from torch import nn
    torch.set_num_threads(1); torch.manual_seed(seed); rng = np.random.default_rng(seed)
    data = pickle.load(open(path, "rb"))
    rounds, pools = {"none": (0, 0), "node": (0, 0), "messages": (3, 0), "pool": (0, 8), "both": (3, 8)}[mode]
    P, F, N, A = data[0]["x"].shape[3], data[0]["y"].shape[2], data[0]["nodes"].shape[2], data[0]["attributes"].shape[1]
    W, H, E = 32, 64, 32
    class Critic(nn.Module):
        def __init__(s):
            super().__init__()
            s.enter = nn.Linear(N + A, W); s.down = nn.Linear(W + 1, W); s.up = nn.Linear(W + 1, W); s.after = nn.Linear(W, W); s.before = nn.Linear(W, W)
            s.mix = nn.ModuleList([nn.Linear(5 * W, W) for _ in range(rounds)])
            s.leave = nn.Linear(W, E); s.pool = nn.Linear(W, max(pools, 1)); s.query = nn.Linear(W, max(pools, 1))
            X = P + pools
            extra = 0 if mode == "none" else E
            s.first = nn.Linear(2 * X + F + extra, H); s.second = nn.Linear(H, H); s.last = nn.Linear(H, 1)
        def forward(s, d, rows):
            x, y = (torch.from_numpy(d[k][rows]) for k in "xy")
            B, G, D, _ = x.shape
            parts = []
            if mode != "none":
                nodes = torch.cat([torch.from_numpy(d["nodes"][rows]), torch.from_numpy(d["attributes"]).expand(B, -1, -1)], -1)
                h = s.enter(nodes).relu()
                src, dst = torch.from_numpy(d["source"]), torch.from_numpy(d["target"])
                e = torch.from_numpy(d["edge"]).float()[:, None].expand(B, -1, 1)
                fol, bef = torch.from_numpy(d["fol"][rows]), torch.from_numpy(d["bef"][rows])
                for mix in s.mix:
                    heard = [h]
                    for layer, a, b, deg in ((s.down, src, dst, d["into"]), (s.up, dst, src, d["out"])):
                        m = layer(torch.cat([h[:, a], e], -1)).relu()
                        heard.append(torch.zeros_like(h).index_add(1, b, m) / torch.from_numpy(deg).float()[None, :, None])
                    for layer, o in ((s.after, fol), (s.before, bef)):
                        m = layer(h).relu().gather(1, o.clamp(min=0)[:, :, None].expand(-1, -1, W)) * (o >= 0)[:, :, None]
                        heard.append(m)
                    h = h + mix(torch.cat(heard, -1)).relu()
                if pools:
                    at = torch.from_numpy(d["at"][rows]); work = torch.from_numpy(d["work"]).float()
                    one = torch.nn.functional.one_hot(at, D).float() * work[None, :, None]
                    mean = torch.einsum("bgd,bgw->bdw", one, h) / one.sum(1).clamp(min=1e-9)[:, :, None]
                    key = s.pool(mean)  # B D Q
                    q = s.query(h)  # B G Q
                    x = torch.cat([x, (q[:, :, None] * key[:, None]).tanh()], -1)
                parts.append(s.leave(h))
            here = (torch.from_numpy(d["at"][rows])[:, :, None, None].expand(-1, -1, 1, x.shape[-1]))
            there = x.gather(2, here)  # features of where it is
            z = torch.cat([x, x - there, torch.cat([y, *parts], -1)[:, :, None].expand(-1, -1, D, -1)], -1)
            return s.last(s.second(s.first(z).relu()).relu())[..., 0]
    net = Critic(); opt = torch.optim.Adam(net.parameters(), 2e-3)
    tr = [d for d in data if d["split"] == "train"]; te = [d for d in data if d["split"] == "test"]
    per = len(tr[0]["x"]); B = 6; total = epochs * len(tr) * (per // B); number = 0
    TAU = 0.003
    def loss_of(out, gain):
        ok = torch.isfinite(gain); g = torch.where(ok, gain, torch.tensor(-1.0)).flatten(1); o = torch.where(ok, out, torch.tensor(-1e3)).flatten(1)
        target = (g / TAU).softmax(1)
        ce = -(target * o.log_softmax(1)).sum(1).mean()
        return ce
    def evaluate():
        got = {k: [] for k in (1, 4, 16)}; ces = []
        with torch.no_grad():
            for d in te:
                gain = torch.from_numpy(d["gain"]); out = net(d, np.arange(len(d["x"])))
                ces.append(float(loss_of(out, gain)))
                ok = torch.isfinite(gain)
                here = torch.zeros_like(gain, dtype=torch.bool).scatter(2, torch.from_numpy(d["at"])[:, :, None], True)
                o = torch.where(ok & ~here, out, torch.tensor(-1e9)).flatten(1); g = torch.where(ok, gain, torch.tensor(-1.0)).flatten(1)
                top = g.max(1).values.clamp(min=0); some = top > 1e-4
                if not some.any(): continue
                for k in got:
                    best = g.gather(1, o.topk(k, 1).indices).max(1).values.clamp(min=0)
                    got[k].append(float((best[some] / top[some]).mean()))
        return {str(k): round(float(np.mean(v)), 4) for k, v in got.items()} | {"ce": round(float(np.mean(ces)), 4)}
    began = time.time()
    for epoch in range(epochs):
        order = [(i, b) for i in range(len(tr)) for b in range(per // B)]
        perm = {i: rng.permutation(per) for i in range(len(tr))}
        rng.shuffle(order); tot = 0.0
        for i, b in order:
            d = tr[i]; rows = perm[i][b * B:(b + 1) * B]
            for gr in opt.param_groups: gr["lr"] = 2e-3 * (1 - number / total) + 1e-5
            number += 1
            loss = loss_of(net(d, rows), torch.from_numpy(d["gain"][rows]))
            opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step(); tot += float(loss)
        if epoch % 5 == 4 or epoch == epochs - 1:
            line = dict(mode=mode, seed=seed, epoch=epoch + 1, train=round(tot / len(order), 4), **evaluate(), s=round(time.time() - began))
            print(json.dumps(line), flush=True); open(outfile, "a").write(json.dumps(line) + "\n")
if MODE == "data": make_data(sys.argv[2])
else: train(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
