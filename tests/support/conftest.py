import pytest

from placeto.support.ray_session import ray_session


@pytest.fixture(scope="module")
def ray():
    """One Ray for all tests of a file."""
    with ray_session(None, 2):
        import ray

        yield ray
    assert not ray.is_initialized()
