"""Gymnasium alone: random agents side by side, and agents that learn, without a network."""

import gymnasium as gym
import numpy as np

PROBLEM = {"graph": "nmt", "cluster": "k80x2", "grouping": 10}
NUM_ENVS = 64


def episodes(envs, probability, rng):
    """An episode in each environment: which devices were chosen, and what came of it.

    `probability` (groups,) is how likely each group is given the second device.
    """
    observations, infos = envs.reset()
    chosen = np.zeros((NUM_ENVS, len(probability)), dtype=int)
    over = np.zeros(NUM_ENVS, dtype=bool)
    while not over.all():
        group = observations["current_node"]
        actions = (rng.random(NUM_ENVS) < probability[group]).astype(int)
        chosen[np.arange(NUM_ENVS), group] = actions
        observations, _, over, _, infos = envs.step(actions)
    return chosen, infos["step_time"]


def main(seed=0, iterations=20):
    """Trains an agent, and says what it makes of the problem."""
    rng = np.random.default_rng(seed)
    envs = gym.make_vec(
        "placeto:DevicePlacement-v0", num_envs=NUM_ENVS, autoreset_mode="Disabled", **PROBLEM
    )
    envs.reset(seed=seed)
    groups = envs.single_observation_space["node_mask"].n
    probability = np.full(groups, 0.5)
    _, step_times = episodes(envs, probability, rng)
    print(f"step time of a random agent: {1e3 * step_times.mean():.1f} ms on average")

    # The cross-entropy method (Rubinstein 1999): go half the way to what the best eighth did.
    for _ in range(iterations):
        chosen, step_times = episodes(envs, probability, rng)
        best = chosen[step_times.argsort()[: NUM_ENVS // 8]]
        probability += 0.5 * (best.mean(axis=0) - probability)

    _, step_times = episodes(envs, probability.round(), rng)
    print(f"step time of the trained agent: {1e3 * step_times[0]:.1f} ms")
    envs.close()


if __name__ == "__main__":
    main()
