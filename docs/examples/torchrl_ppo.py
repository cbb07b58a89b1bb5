"""TorchRL: PPO on DevicePlacement-v0, with Placeto's network; action specs follow the mask."""

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import ActionMask, GymWrapper, SerialEnv, TransformedEnv
from torchrl.modules import ProbabilisticActor
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from placeto.models.placeto_2019.network import Placeto2019Shape
from placeto.models.placeto_2019.observed import ObservedPolicy

PROBLEM = {"graph": "nmt", "cluster": "k80x2", "grouping": 10}
KEYS = ["node_features", "edge_index", "node_mask", "edge_mask", "current_node", "action_mask"]


def make_env():
    """The environment as TorchRL has it, actions by number."""
    env = gym.make("placeto:DevicePlacement-v0", **PROBLEM)
    return GymWrapper(env, categorical_action_encoding=True)


class Network(torch.nn.Module):
    """Placeto's policy and a value, from tensors in the order of KEYS."""

    def __init__(self, policy):
        super().__init__()
        self.policy = policy

    def forward(self, *parts):
        """Logits and values (..., 1)."""
        logits, value = self.policy(dict(zip(KEYS, parts, strict=True)))
        return logits, value.unsqueeze(-1)


def final_step_time(policy):
    """Milliseconds at the end of an episode in which the agent takes no chances."""
    env = gym.make("placeto:DevicePlacement-v0", **PROBLEM)
    observation, info = env.reset()
    over = False
    while not over:
        with torch.no_grad():
            logits, _ = policy({key: torch.as_tensor(part) for key, part in observation.items()})
        observation, _, over, _, info = env.step(int(logits.argmax()))
    return 1e3 * info["step_time"]


def main(seed=0, iterations=15):
    """Trains an agent, and says what it makes of the problem."""
    torch.set_num_threads(1)  # operations are too small to be shared out
    torch.manual_seed(seed)
    envs = TransformedEnv(SerialEnv(32, make_env), ActionMask())
    envs.set_seed(seed)
    policy = ObservedPolicy(Placeto2019Shape(num_devices=2, rounds=2, keep=0.0))
    network = Network(policy)  # seen twice, as an actor and as a critic
    actor = ProbabilisticActor(
        TensorDictModule(network, in_keys=KEYS, out_keys=["logits", "_"]),
        in_keys=["logits"],
        distribution_class=Categorical,
        return_log_prob=True,
    )
    critic = TensorDictModule(network, in_keys=KEYS, out_keys=["_", "state_value"])
    collector = Collector(
        envs,
        actor,
        frames_per_batch=320,  # 32 episodes of 10 steps, one for each group
        total_frames=320 * iterations,
        auto_register_policy_transforms=True,
    )
    # The network reads graphs one after the other, which vmap cannot.
    advantage = GAE(gamma=1.0, lmbda=1.0, value_network=critic, deactivate_vmap=True)
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.02, normalize_advantage=True)
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, iterations)
    print(f"step time of the untrained agent: {final_step_time(policy):.1f} ms")
    for batch in collector:
        with torch.no_grad():
            advantage(batch)
        flat = batch.flatten(0, 1)
        for _ in range(6):
            for rows in torch.randperm(len(flat)).chunk(4):
                losses = loss(flat[rows])
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                optimizer.zero_grad()
                total.backward()
                torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                optimizer.step()
        schedule.step()
    collector.shutdown()
    print(f"step time of the trained agent: {final_step_time(policy):.1f} ms")


if __name__ == "__main__":
    main()
