"""Stable-Baselines3: one small network scores the devices one by one, on unseen graphs, too."""

import gymnasium as gym
import torch
from gymnasium.wrappers import FilterObservation
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

import placeto

GROUPS = 40


def make(graph):
    """The environment, of whose observations this agent needs two."""
    env = gym.make("DevicePlacement-v0", graph=graph, cluster="k80x4", grouping=GROUPS)
    return FilterObservation(env, ["device_features", "action_mask"])


class Beside(BaseFeaturesExtractor):
    """(batch, num_devices, 2 F + 1): each device's features, less their mean, and its mask."""

    def __init__(self, observation_space):
        devices, features = observation_space["device_features"].shape
        super().__init__(observation_space, devices * (2 * features + 1))

    def forward(self, observations):
        """Puts them side by side."""
        x, mask = observations["device_features"], observations["action_mask"][..., None]
        return torch.cat([x, x - x.mean(dim=1, keepdim=True), mask.float()], dim=2)


class Scorer(nn.Module):
    """A score of each device, all by the same weights; or what the best of them promises."""

    def __init__(self, inputs, value=False):
        super().__init__()
        layers = [nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
        nn.init.zeros_(layers[-1].weight)  # every device alike at first
        self.network, self.value = nn.Sequential(*layers), value

    def forward(self, x):
        """(batch, num_devices) logits, or (batch, 1) values."""
        scores = self.network(x[..., :-1]).squeeze(2)
        if self.value:
            return scores.mean(dim=1, keepdim=True)
        return scores.masked_fill(x[..., -1] == 0, -1e8)


class SharedScorer(ActorCriticPolicy):
    """A policy for any number of devices."""

    def __init__(self, observation_space, action_space, schedule, **more):
        options = {"features_extractor_class": Beside, "net_arch": []}
        super().__init__(observation_space, action_space, schedule, **options, **more)
        inputs = 2 * observation_space["device_features"].shape[1] + 1
        self.action_net, self.value_net = Scorer(inputs - 1), Scorer(inputs - 1, value=True)
        self.optimizer = self.optimizer_class(self.parameters(), schedule(1), eps=1e-5)


def final_step_time(model, graph):
    """Seconds at the end of two sweeps in which the agent takes no chances."""
    env = make(graph)
    observation, info = env.reset()
    for _ in range(2):
        over = False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, over, _, info = env.step(int(action))
        best = info["best_placement"]
        observation, info = env.reset(options={"placement": best})
    return info["step_time"]


def main(seed=0, episodes=960):
    """Trains on one graph, then places that and another one."""
    torch.set_num_threads(1)  # operations are too small to be shared out
    envs = make_vec_env(lambda: make("nmt"), n_envs=16, seed=seed)
    model = PPO(
        SharedScorer,
        envs,
        n_steps=GROUPS,  # one episode: a step for each group
        batch_size=320,
        n_epochs=4,
        gamma=1.0,
        gae_lambda=0.95,
        learning_rate=lambda left: 2e-3 * left,  # of the training
        ent_coef=0.01,
        seed=seed,
    )
    model.learn(total_timesteps=GROUPS * episodes)
    for graph in ("nmt", "rnnlm"):
        print(f"step time of {graph}: {1e3 * final_step_time(model, graph):.1f} ms")
        problem = placeto.PlacementProblem(
            placeto.load_graph(graph), placeto.load_cluster("k80x4"), GROUPS
        )
        for method in ("single", "expert", "metis", "etf", "heft"):
            placement = placeto.place(problem, method)
            print(f"step time of {graph} by {method}: {1e3 * placement.step_time:.1f} ms")


if __name__ == "__main__":
    main()
