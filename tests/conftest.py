import os
import sys
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
# What reads TensorFlow in and starts its workers, and has next to nothing compiled.
WITHOUT_KERNELS = ("extraction", "zoo", "measurement", "integrations")
OF_THREADS = "test_batch test_against_reference test_device_features test_vector test_relaxation"

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=5)
settings.register_profile(
    "deep",
    deadline=None,
    max_examples=2500,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items):
    """The second of two workers begins without kernels, which else both would compile.

    Of that, what needs Ray comes last, so that it is mostly one of them that starts it.
    """
    without, ray, others = [], [], []
    for item in items:
        kernels = item.path.relative_to(ROOT).parts[0] not in WITHOUT_KERNELS
        (ray if "ray" in item.fixturenames else others if kernels else without).append(item)
    half = len(items) // 2
    items[:] = others[:half] + without + ray + others[half:]


@pytest.fixture(scope="session")
def ray():
    """One Ray for all tests of a process: it takes seconds to start."""
    from placeto.support.ray_session import ray_session

    with ray_session(None, 4):
        import ray

        yield ray
    assert not ray.is_initialized()


@pytest.fixture(autouse=True)
def _same_weights_and_one_thread(request):
    """Networks begin alike in every run; threads of two workers of pytest would wait in turn."""
    several = request.path.stem in OF_THREADS.split()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS if several else 1)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
