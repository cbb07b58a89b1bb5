"""sb3-contrib: MaskablePPO on DevicePlacement-v0, which never tries a device that is forbidden."""

import gymnasium as gym
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

from placeto.integrations.sb3 import GraphExtractor

# The first group reads the data, so it stays on the cpu, device 2; its mask has nothing else.
PROBLEM = {"graph": "nmt", "cluster": "k80x2-cpu", "grouping": 9, "pins": {0: 2}}


def final_step_time(model):
    """Milliseconds at the end of an episode in which the agent takes no chances."""
    env = gym.make("placeto:DevicePlacement-v0", **PROBLEM)
    observation, info = env.reset()
    over = False
    while not over:
        masks = env.unwrapped.action_masks()
        action, _ = model.predict(observation, deterministic=True, action_masks=masks)
        observation, _, over, _, info = env.step(action)
    return 1e3 * info["step_time"]


def main(seed=0, episodes=720):
    """Trains an agent, and says what it makes of the problem."""
    torch.set_num_threads(1)  # operations are too small to be shared out
    envs = make_vec_env("placeto:DevicePlacement-v0", n_envs=32, seed=seed, env_kwargs=PROBLEM)
    model = MaskablePPO(
        "MultiInputPolicy",
        envs,
        policy_kwargs={
            "features_extractor_class": GraphExtractor,
            "features_extractor_kwargs": {"rounds": 2},
            "net_arch": [64],
        },
        n_steps=9,  # one episode: a step for each group
        batch_size=64,
        n_epochs=6,
        gamma=1.0,
        gae_lambda=1.0,
        learning_rate=lambda left: 2e-3 * left,  # of the training
        ent_coef=0.05,
        seed=seed,
    )
    print(f"step time of the untrained agent: {final_step_time(model):.1f} ms")
    model.learn(total_timesteps=9 * episodes)
    print(f"step time of the trained agent: {final_step_time(model):.1f} ms")


if __name__ == "__main__":
    main()
