"""RLlib: PPO on DevicePlacement-v0, with Placeto's network as the RLModule."""

import gymnasium as gym
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import RLModuleSpec
from ray.tune.registry import register_env

from placeto.integrations.rllib import PlacetoRLModule

PROBLEM = {"graph": "nmt", "cluster": "k80x2", "grouping": 10}
register_env("device-placement", lambda config: gym.make("placeto:DevicePlacement-v0", **config))


def final_step_time(module):
    """Milliseconds at the end of an episode in which the agent takes no chances."""
    env = gym.make("placeto:DevicePlacement-v0", **PROBLEM)
    observation, info = env.reset()
    over = False
    while not over:
        batch = {key: torch.as_tensor(part)[None] for key, part in observation.items()}
        output = module.forward_inference({Columns.OBS: batch})
        action = int(output[Columns.ACTION_DIST_INPUTS].argmax())
        observation, _, over, _, info = env.step(action)
    return 1e3 * info["step_time"]


def main(seed=0, iterations=20):
    """Trains an agent, and says what it makes of the problem."""
    torch.set_num_threads(1)  # operations are too small to be shared out
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    config = (
        PPOConfig()
        .environment("device-placement", env_config=PROBLEM)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=32, batch_mode="complete_episodes")
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=PlacetoRLModule, model_config={"rounds": 2, "keep": 0.0}
            )
        )
        .training(
            train_batch_size_per_learner=320,  # 32 episodes of 10 steps, one for each group
            minibatch_size=80,
            num_epochs=6,
            gamma=1.0,
            lambda_=1.0,
            lr=[[0, 2e-3], [320 * iterations, 0.0]],  # by steps of the environment
            clip_param=0.2,
            use_kl_loss=False,
            entropy_coeff=0.02,
            grad_clip=0.5,
        )
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    print(f"step time of the untrained agent: {final_step_time(algorithm.get_module()):.1f} ms")
    for _ in range(iterations):
        algorithm.train()
    print(f"step time of the trained agent: {final_step_time(algorithm.get_module()):.1f} ms")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
