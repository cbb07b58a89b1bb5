import gymnasium as gym
import numpy as np

from placeto.envs import GraphSpaceWrapper, PyGWrapper


def test_graph_space_holds_the_unpadded_graph():
    plain = gym.make("DevicePlacement-v0", graph="nmt", max_groups=300, max_edges=2000)
    wrapped = GraphSpaceWrapper(gym.make("DevicePlacement-v0", graph="nmt"))
    flat, _ = plain.reset(seed=0)
    graph, _ = wrapped.reset(seed=0)
    assert wrapped.observation_space.contains(graph)
    groups, edges = len(graph.nodes), len(graph.edges)
    np.testing.assert_array_equal(graph.nodes, flat["node_features"][:groups])
    np.testing.assert_array_equal(graph.edge_links, flat["edge_index"][:, :edges].T)
    assert flat["node_mask"].sum() == groups
    assert flat["edge_mask"].sum() == edges


def test_pyg_data_holds_the_unpadded_graph():
    env = PyGWrapper(gym.make("DevicePlacement-v0", graph="nmt", max_groups=300))
    data, _ = env.reset(seed=0)
    data.validate()
    problem = env.unwrapped.problem
    assert data.num_nodes == problem.num_groups
    np.testing.assert_array_equal(data.edge_index, np.stack(problem.group_edges[:2]))
    after, reward, *_ = env.step(1)
    assert after.x[data.current_node, 6 + 1] == 1
    assert isinstance(reward, float)
