import subprocess
import sys

# In a process of its own: Stable-Baselines3 loads TensorBoard, and that TensorFlow, if it can.
CODE = """
import sys
sys.modules["tensorflow"] = None
import gymnasium as gym
import torch
from stable_baselines3.common.preprocessing import preprocess_obs
from placeto.integrations.sb3 import GraphExtractor
from placeto.models.placeto_2019.observed import read_observations

torch.manual_seed(0)
env = gym.make("placeto:DevicePlacement-v0", graph="nmt", cluster="k80x2", grouping=10)
extractor = GraphExtractor(env.observation_space, rounds=2)
env.reset(seed=0)
for action in (1, 0, 1):
    seen, *_ = env.step(action)
batch = {key: torch.as_tensor(part)[None] for key, part in seen.items()}
read = read_observations(extractor.reader, batch)
assert read.shape == (1, extractor.features_dim)
stored = batch | {"current_node": batch["current_node"][None]}  # as in its rollout buffer
for form in (batch, stored):
    torch.testing.assert_close(extractor(preprocess_obs(form, env.observation_space)), read)
moved = batch | {"current_node": batch["current_node"] + 1}
assert not torch.equal(extractor(preprocess_obs(moved, env.observation_space)), read)
"""


def test_extractor_reads_what_the_library_makes_of_observations():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
