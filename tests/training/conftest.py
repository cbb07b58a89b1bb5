import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """The networks are small, and sums over threads are not always those of one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
