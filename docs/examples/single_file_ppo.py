"""Proximal policy optimisation on DevicePlacement-v0 in a single file, in the style of CleanRL."""

from dataclasses import dataclass

import gymnasium as gym
import torch
import tyro
from torch import nn
from torch.distributions import Categorical


@dataclass
class Args:
    """What can be set on the command line."""

    graph: str = "nmt"
    cluster: str = "k80x2"
    grouping: int = 10  # groups, at most
    seed: int = 0
    num_envs: int = 16
    iterations: int = 40  # of one episode in each environment
    epochs: int = 4
    minibatches: int = 2
    learning_rate: float = 3e-3
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    width: int = 64


class Agent(nn.Module):
    """One round of messages along the edges, then a policy and a value for the current group."""

    def __init__(self, env, width):
        super().__init__()
        features = env.single_observation_space["node_features"].shape[-1]
        self.node = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width))
        self.heard = nn.Linear(width, width)
        self.summary = nn.Sequential(nn.Linear(3 * width, width), nn.Tanh())
        self.actor = nn.Linear(width, env.single_action_space.n)
        self.critic = nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # every device alike at first

    def forward(self, obs):
        """The distribution of the action, and the value."""
        mask = obs["node_mask"][..., None]
        nodes = self.node(obs["node_features"]) * mask  # (batch, max_groups, width)
        source, target = obs["edge_index"][..., None].expand(-1, -1, -1, nodes.shape[-1]).unbind(1)
        sent = nodes.gather(1, source) * obs["edge_mask"][..., None]
        heard = self.heard(torch.zeros_like(nodes).scatter_add(1, target, sent)).relu() * mask
        rows, current = torch.arange(len(nodes)), obs["current_node"]
        whole = (nodes + heard).sum(1) / mask.sum(1)
        x = self.summary(torch.cat([nodes[rows, current], heard[rows, current], whole], dim=1))
        logits = self.actor(x).masked_fill(obs["action_mask"] == 0, -1e9)
        return Categorical(logits=logits), self.critic(x).squeeze(1)


def tensors(obs):
    """A batch of observations for torch."""
    return {key: torch.as_tensor(value) for key, value in obs.items()}


def play(agent, env, greedy=False):
    """One episode in each environment; all have as many steps as the graph has groups."""
    steps, over = [], False
    obs, info = env.reset()
    while not over:
        with torch.no_grad():
            distribution, value = agent(tensors(obs))
        action = distribution.probs.argmax(1) if greedy else distribution.sample()
        following, reward, terminated, _, info = env.step(action.numpy())
        logprob = distribution.log_prob(action)
        steps.append((tensors(obs), action, logprob, value, torch.as_tensor(reward).float()))
        obs, over = following, terminated.all()
    return steps, info


def main(args):
    """Trains an agent, and says what it makes of the problem."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    env = gym.make_vec(
        "placeto:DevicePlacement-v0",
        num_envs=args.num_envs,
        graph=args.graph,
        cluster=args.cluster,
        grouping=args.grouping,
        autoreset_mode="Disabled",
    )
    env.reset(seed=args.seed)
    agent = Agent(env, args.width)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    for iteration in range(args.iterations):
        optimizer.param_groups[0]["lr"] = (1 - iteration / args.iterations) * args.learning_rate
        steps, info = play(agent, env)
        values = torch.stack([value for _, _, _, value, _ in steps])
        advantages, last, following = torch.zeros_like(values), 0.0, 0.0
        for t in reversed(range(len(steps))):  # generalised advantage estimation, no discount
            delta = steps[t][4] + following - values[t]
            advantages[t] = last = delta + args.gae_lambda * last
            following = values[t]
        returns = (advantages + values).flatten()
        advantages = advantages.flatten()
        obs = {key: torch.cat([step[0][key] for step in steps]) for key in steps[0][0]}
        actions = torch.cat([action for _, action, _, _, _ in steps])
        old = torch.cat([logprob for _, _, logprob, _, _ in steps])

        for _ in range(args.epochs):
            for rows in torch.randperm(len(actions)).chunk(args.minibatches):
                distribution, value = agent({key: part[rows] for key, part in obs.items()})
                ratio = (distribution.log_prob(actions[rows]) - old[rows]).exp()
                advantage = advantages[rows]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
                value_loss = 0.5 * (value - returns[rows]).square().mean()
                loss = policy_loss + value_loss - args.entropy * distribution.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if iteration % 10 == 9:
            mean = 1e3 * info["step_time"].mean()
            print(f"iteration {iteration + 1}: step time {mean:.1f} ms on average")

    _, info = play(agent, env, greedy=True)
    print(f"step time of the trained agent: {1e3 * info['step_time'][0]:.1f} ms")


if __name__ == "__main__":
    main(tyro.cli(Args))
