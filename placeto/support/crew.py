"""Workers that may die: a function, done on many cores or machines at once."""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

import placeto
from placeto.support.errors import PlacetoError
from placeto.support.ray_session import import_ray

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Item], Result]

DEATHS_A_WORKER = 5
"""How often workers may die, each on average, before any of them finishes anything."""

PATIENCE = 60.0
"""Seconds without a sign of life after which it is said that workers have not started."""

LONGEST_REASON = 300

# Arrays that can only be read stay so, which the default does not keep.
PROTOCOL = 5


class Crew(Generic[Item, Result]):
    """Ray actors that all do the same work.

    One that dies is replaced, and what it was at is done again by the next that is free: what the
    work of an item yields must depend on the item alone. Errors of the work are raised here, as
    they are.

    Use it in a `with` block, or close it.

    Args:
        make: makes what does the work, in the actor, by the actor's number (from 0; that which
            takes a dead one's place has its number): `make(number)(item)` is an item's result.
        options: of each actor, as Ray knows them: CPUs, where it runs.
        progress: told of every death, and of workers that do not start, in a line.

    Attributes:
        deaths: how many actors died so far.
    """

    def __init__(
        self,
        make: Callable[[int], Work[Item, Result]],
        options: Sequence[Mapping[str, Any]],
        progress: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._ray = import_ray()
        # By value, and not as arrays in shared memory: those can only be read, and for such numba
        # would compile everything once more.
        self._make = self._ray.put(self._ray.cloudpickle.dumps(make))
        self._progress = progress
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._idle: deque[_Actor] = deque()
        self._starting: dict[Any, _Actor] = {}
        self._busy: dict[Any, tuple[_Actor, int, bytes]] = {}
        self._tickets = 0
        self._in_vain = 0
        self.deaths = 0
        self.size = len(options)
        for number, each in enumerate(options):
            self._hire(number, each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors; what they were at is lost."""
        busy = [actor for actor, *_ in self._busy.values()]
        for actor in (*self._idle, *self._starting.values(), *busy):
            actor.end()

    def submit(self, item: Item) -> int:
        """Hands over an item, as it is at the moment.

        Returns:
            Its ticket, by which `take` names its result.
        """
        ticket = self._tickets
        self._tickets += 1
        self._waiting.append((ticket, pickle.dumps(item, PROTOCOL)))
        self._hand_out()
        return ticket

    def start(self) -> None:
        """Waits until an actor is ready for work.

        Raises:
            PlacetoError: none will be.
            Exception: what `make` raised.
        """
        while not self._idle and not self._busy:
            self._next()

    def take(self) -> tuple[int, Result]:
        """Waits for the next item that is done, of those handed over; its ticket and result.

        Raises:
            PlacetoError: workers die again and again.
            Exception: what the work raised.
        """
        while (done := self._next()) is None:
            pass
        return done

    def map(self, items: Iterable[Item]) -> Iterator[tuple[int, Result]]:
        """Numbers of items and their results, as they are done; nothing else may be under way."""
        numbers = {self.submit(item): number for number, item in enumerate(items)}
        for _ in range(len(numbers)):
            ticket, result = self.take()
            yield numbers[ticket], result

    def _next(self) -> tuple[int, Result] | None:
        """Waits until something happens: an item is done, or an actor is ready, or dead."""
        self._hand_out()
        done = self._first()
        if done in self._starting:
            actor = self._starting.pop(done)
            try:
                self._get(done)
            except _Lost as error:
                self._replace(actor, error)
            except BaseException:
                actor.end()
                raise
            else:
                self._idle.append(actor)
            return None
        actor, ticket, item = self._busy.pop(done)
        try:
            result: Result = pickle.loads(self._get(done))
        except _Lost as error:
            self._waiting.appendleft((ticket, item))
            self._replace(actor, error)
            return None
        except BaseException:
            self._idle.append(actor)
            raise
        self._idle.append(actor)
        self._in_vain = 0
        return ticket, result

    def _first(self) -> Any:
        """What happened first; it may be long."""
        pending = [*self._busy, *self._starting]
        done, _ = self._ray.wait(pending, timeout=PATIENCE if self._starting else None)
        if not done:
            self._progress(
                f"{len(self._starting)} of {self.size} workers have not started for "
                f"{PATIENCE:g} seconds; does Ray have the CPUs, or the machine, that they ask for?"
            )
            done, _ = self._ray.wait(pending)
        return done[0]

    def _get(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, PlacetoError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            # Killed, out of memory, its machine gone: nothing that the work did.
            raise _Lost(str(error)) from error

    def _hand_out(self) -> None:
        while self._idle and self._waiting:
            actor, (ticket, item) = self._idle.popleft(), self._waiting.popleft()
            self._busy[actor.handle.do.remote(item)] = (actor, ticket, item)

    def _hire(self, number: int, options: Mapping[str, Any]) -> None:
        actor = _Actor(self._ray, number, options)
        began = actor.handle.begin.remote(self._make, number, placeto.__version__)
        self._starting[began] = actor

    def _replace(self, actor: "_Actor", error: Exception) -> None:
        actor.end()
        self.deaths += 1
        self._in_vain += 1
        if self._in_vain > DEATHS_A_WORKER * self.size:
            reason = " ".join(str(error).split())
            raise PlacetoError(
                f"{self._in_vain} workers died one after the other, and none finished anything; of "
                f"the last one: {reason[:LONGEST_REASON]}"
            )
        self._progress(f"worker {actor.number} died; another takes its place")
        self._hire(actor.number, actor.options)


def one_a_node(size: int, cpus: int) -> list[Mapping[str, Any]]:
    """Options of actors that run each on a machine of its own, so as not to disturb each other.

    Args:
        size: how many.
        cpus: of each.

    Raises:
        PlacetoError: there are fewer machines.
    """
    nodes = [
        node
        for node in import_ray().nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0.0) >= cpus
    ]
    if len(nodes) < size:
        raise PlacetoError(
            f"{size} workers that measure need a machine each, with {cpus} CPUs; there are "
            f"{len(nodes)}"
        )
    # Every machine has 1 of a resource that is called by its address.
    return [
        {"num_cpus": cpus, "resources": {f"node:{node['NodeManagerAddress']}": 0.6}}
        for node in nodes[:size]
    ]


class _Lost(Exception):  # noqa: N818 (an actor is replaced, and nobody sees this)
    """An actor died, or what it handed back was lost."""


class _Actor:
    """A process of Ray's, and how to start another like it."""

    def __init__(self, ray: Any, number: int, options: Mapping[str, Any]) -> None:
        self.number = number
        self.options = options
        self._ray = ray
        self.handle = ray.remote(max_restarts=0, **options)(Worker).remote()

    def end(self) -> None:
        """Ends the process, if it has not ended yet."""
        self._ray.kill(self.handle)


class Worker:
    """What runs in an actor's process; it is handed pickles, and hands them back."""

    def begin(self, make: bytes, number: int, version: str) -> None:
        """Makes what does the work.

        Raises:
            PlacetoError: this machine has another version of the package.
        """
        if placeto.__version__ != version:
            raise PlacetoError(
                f"a worker's machine has placeto {placeto.__version__}, not {version}; all need "
                "the same"
            )
        self._work: Work[Any, Any] = pickle.loads(make)(number)

    def do(self, item: bytes) -> bytes:
        """Does the work of an item."""
        return pickle.dumps(self._work(pickle.loads(item)), PROTOCOL)
