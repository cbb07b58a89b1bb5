import pytest

from placeto.measurement.child import Child, ChildError, ChildTimeout

MODULE = "tests.measurement.echo"


@pytest.fixture
def child():
    made = Child("the child", MODULE, {"hello": 1})
    yield made
    made.close()


def test_objects_and_bytes_come_back(child):
    assert child.receive(60) == {"hello": 1}
    child.send({"say": "é", "data": True})
    assert child.receive(60) == {"say": "é", "data": True}
    assert child.receive_bytes() == b"\x00\xff"
    with pytest.raises(ChildTimeout, match=r"the child did not answer within 0\.01 s"):
        child.receive(0.01)
    assert child.alive


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"raise": "no luck"}, "the child ended with status 1: ValueError: no luck"),
        ({"exit": 3}, "the child ended with status 3"),
        ({"signal": 9}, r"the child was killed \(by hand, or for want of memory\)"),
        ({"signal": 11}, "the child was ended by SIGSEGV"),
    ],
)
def test_how_it_ended_is_one_line(child, order, message):
    child.receive(60)
    child.send(order)
    with pytest.raises(ChildError, match=f"^{message}$"):
        child.receive(60)
    assert not child.alive
    with pytest.raises(ChildError, match=message):
        child.send({})


def test_it_is_gone_when_it_is_closed(child):
    child.close()
    assert not child.alive
