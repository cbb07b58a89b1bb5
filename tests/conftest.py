import os
import sys

import numba
import pytest
from hypothesis import HealthCheck, settings

OF_THREADS = "test_batch test_against_reference test_device_features test_vector test_relaxation"

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "deep",
    deadline=None,
    max_examples=5000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def _same_weights_and_one_thread(request):
    """Networks begin alike in every run; threads of two workers of pytest would wait in turn."""
    several = request.path.stem in OF_THREADS.split()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS if several else 1)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
