import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.support.dags import compressed, levels, topological_order


@st.composite
def edges(draw: st.DrawFn, *, acyclic: bool) -> tuple[int, np.ndarray, np.ndarray]:
    size = draw(st.integers(1, 20))
    node = st.integers(0, size - 1)
    pairs = np.array(draw(st.lists(st.tuples(node, node), max_size=40)), dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    if acyclic:
        pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        pairs = np.array(draw(st.permutations(range(size))), dtype=np.int64)[pairs]
    return size, pairs[:, 0], pairs[:, 1]


def digraph(size: int, sources: np.ndarray, targets: np.ndarray) -> nx.DiGraph:
    g = nx.DiGraph()
    g.add_nodes_from(range(size))
    g.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    return g


@given(edges(acyclic=True))
def test_against_networkx(example: tuple[int, np.ndarray, np.ndarray]) -> None:
    g = digraph(*example)
    assert topological_order(*example).tolist() == list(nx.lexicographical_topological_sort(g))
    expected = {
        node: level
        for level, generation in enumerate(nx.topological_generations(g))
        for node in generation
    }
    assert dict(enumerate(levels(*example).tolist())) == expected


@given(edges(acyclic=False))
def test_cycles(example: tuple[int, np.ndarray, np.ndarray]) -> None:
    g = digraph(*example)
    stuck = set()
    for part in nx.strongly_connected_components(g):
        if len(part) > 1 or g.has_edge(*list(part) * 2):
            stuck |= part | nx.descendants(g, next(iter(part)))
    assert set(np.flatnonzero(levels(*example) < 0).tolist()) == stuck
    assert set(topological_order(*example).tolist()) == set(range(example[0])) - stuck


def test_compressed_by_hand() -> None:
    start, items = compressed(4, np.array([2, 0, 2, 0]), np.array([7, 5, 6, 9]))
    assert start.tolist() == [0, 2, 2, 4, 4]
    assert items.tolist() == [5, 9, 7, 6]
