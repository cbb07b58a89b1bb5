"""Training steps of any size, for benchmarks of size.

They imitate the bundled ones (`inception_v3`, `nmt`) in their shares of constants (26%), variables
(5%) and reshapes (22%), and in 1.4 edges an op. Every other gradient reads an activation too, so
that edges across the whole step keep activations in memory. Ops are numbered in a topological
order, sources just before what reads them, and named so that the co-location rules apply.
"""

import numpy as np

from placeto import ComputationGraph, PlacetoError
from placeto.support.arrays import Ints

SMALLEST = 100
LAYER_OPS = 32
SHARES = {"forward": 0.32, "constant": 0.13, "variable": 0.05}  # of the ops, constants each way
ACTIVATION_BYTES, PARAMETER_BYTES = 12e9, 6e8  # in all, whatever the number of ops
MEDIAN_SECONDS, SPREAD = 20e-6, 1.5  # of an op that takes time on a K80; log-normal
CPU_SLOWDOWN = 2.7  # the ratio of the bundled step's times
TYPES = ("Mul", "Reshape", "Const", "VarHandleOp", "AssignAddVariableOp")
WORK, RESHAPE, CONSTANT, VARIABLE, UPDATE = range(len(TYPES))


def synthetic_graph(num_ops: int, seed: int = 0) -> ComputationGraph:
    """A training step of so many ops, 100 at least, with costs for the kinds `k80` and `cpu`."""
    if num_ops < SMALLEST:
        raise PlacetoError(f"a synthetic graph of {num_ops} ops: expected at least {SMALLEST}")
    rng = np.random.default_rng(seed)
    forward, constants, variables = (int(num_ops * share) for share in SHARES.values())
    late_constants = num_ops - 2 * forward - constants - 2 * variables
    op = np.arange(forward)
    # What each source belongs to, by forward op.
    constant_of = rng.integers(0, forward, constants)
    late_constant_of = rng.integers(0, forward, late_constants)
    variable_of = np.sort(rng.choice(forward, variables, replace=False))

    compute = np.where(rng.random(forward) < 0.35, RESHAPE, WORK)
    # Types, what they are sorted by to be numbered, the forward ops that they belong to, names.
    blocks = (
        (compute, op, op, "{}"),
        (compute, 2.0 * forward - op, op, "gradient_tape/{}/grad"),
        (CONSTANT, constant_of - 0.5, constant_of, "{}/const_{}"),
        (CONSTANT, 2.0 * forward - late_constant_of - 0.5, late_constant_of,
         "gradient_tape/{}/shape_{}"),
        (VARIABLE, variable_of - 0.25, variable_of, "{}/kernel"),
        (UPDATE, 3.0 * forward + variable_of, variable_of, "update/{}/kernel"),
    )  # fmt: skip
    kind = np.concatenate([np.broadcast_to(codes, owner.shape) for codes, _, owner, _ in blocks])
    order = np.argsort(np.concatenate([place for _, place, _, _ in blocks]), kind="stable")
    scope = [f"block_{number // LAYER_OPS}/op_{number % LAYER_OPS}" for number in range(forward)]
    names = [
        name.format(scope[number], index)
        for _, _, owner, name in blocks
        for index, number in enumerate(owner.tolist())
    ]
    sizes = [len(owner) for _, _, owner, _ in blocks]
    gradient_at, constant_at, _, variable_at, update_at = np.cumsum(sizes)[:-1].tolist()

    sources, targets = _forward_edges(forward, rng)
    kept = sources[: forward - 1]  # one input of each forward op but the first
    saved = rng.random(forward - 1) < 0.5
    producer = np.concatenate([
        sources, targets + gradient_at, kept[saved],
        np.arange(constant_at, variable_at), np.arange(variable_at, update_at),
        np.arange(variable_at, update_at), variable_of + gradient_at,
    ])  # fmt: skip
    consumer = np.concatenate([
        targets, sources + gradient_at, op[1:][saved] + gradient_at,
        constant_of, late_constant_of + gradient_at, variable_of,
        np.arange(update_at, num_ops), np.arange(update_at, num_ops),
    ])  # fmt: skip

    number = np.argsort(order)
    # Every op but the updates has one tensor, numbered by its producer.
    produces = kind[order] != UPDATE
    producing, tensor_of = order[produces], (np.cumsum(produces) - 1)[number]

    parameters = _shared(PARAMETER_BYTES, variables, rng)
    param_bytes = np.zeros(num_ops, dtype=np.int64)
    param_bytes[variable_at:update_at] = parameters
    size = np.full(num_ops, 8)
    size[:constant_at] = np.tile(_shared(ACTIVATION_BYTES / 2, forward, rng), 2)
    size[variable_at:update_at] = parameters
    colocation = np.full(num_ops, -1)
    colocation[variable_at:] = np.tile(np.arange(variables), 2)
    seconds = MEDIAN_SECONDS * np.exp(rng.normal(0, SPREAD, num_ops))
    seconds[(kind != WORK) & (kind != UPDATE)] = 0
    slowdown = CPU_SLOWDOWN * np.exp(rng.normal(0, 0.5, num_ops))

    return ComputationGraph(
        name=f"synthetic_{num_ops}",
        op_names=[names[item] for item in order.tolist()],
        op_types=[TYPES[code] for code in kind[order].tolist()],
        op_seconds={"k80": seconds[order], "cpu": (seconds * slowdown)[order]},
        tensor_producer=number[producing],
        tensor_bytes=size[producing],
        edge_tensor=tensor_of[producer],
        edge_consumer=number[consumer],
        param_bytes=param_bytes[order],
        flops=(seconds * 1e12)[order],
        colocation=colocation[order],
        meta={"source": f"synthetic?ops={num_ops}&seed={seed}", "kind": "vision"},
    )


def _forward_edges(count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Producers and consumers among `count` forward ops; the first `count - 1` lead to each."""
    op = np.arange(1, count)
    back = rng.choice([1, 2, 3], count - 1, p=[0.8, 0.12, 0.08])
    far = rng.random(count - 1) < 0.01
    back[far] = rng.integers(1, 2000, int(far.sum()))
    second = op[rng.random(count - 1) < 0.15]
    sources = np.concatenate([op - back, second - rng.integers(2, 40, len(second))])
    return np.maximum(sources, 0), np.concatenate([op, second])


def _shared(total: float, count: int, rng: np.random.Generator) -> Ints:
    """(count,) bytes of log-normal sizes that add up to about `total`."""
    size = np.exp(rng.normal(0, 2, count))
    return np.ceil(size * (total / size.sum())).astype(np.int64)
