"""Workers that may die: a function, done on many cores or machines at once."""

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

import placeto
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.ray_session import import_ray

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Item], Result]

DEATHS = 20  # how often a worker may die
PATIENCE = 60.0  # s without a sign of life after which it is said that workers have not started
LONGEST_REASON = 300
PROTOCOL = 5  # arrays that can only be read stay so, which the default does not keep


class Crew(Generic[Item, Result]):
    """Ray actors that all do the same work, as long as a `with` block lasts.

    Ray starts one that dies again, and has it do again what it was at: what the work of an item
    yields must depend on the item alone. Errors of the work are raised here, as they are.

    Args:
        make: makes what does the work, in the actor, by the actor's number from 0, once more where
            the actor had died: `make(number)(item)` is an item's result.
        options: of each actor, as Ray knows them: CPUs, where it runs.
        progress: told of every death, and of workers that do not start, in a line.

    Attributes:
        size: how many actors there are.
        deaths: how often actors were found to have died so far.
    """

    def __init__(
        self,
        make: Callable[[int], Work[Item, Result]],
        options: Sequence[Mapping[str, Any]],
        progress: Progress = silent,
    ) -> None:
        self._ray = ray = import_ray()
        from ray.util import ActorPool

        # By value, and not as arrays in shared memory: those can only be read, and for such numba
        # would compile everything once more. With every item, as an actor may start again; in a
        # list, of which Ray hands over the reference.
        self._make = ray.put(ray.cloudpickle.dumps(make))
        worker, version = ray.remote(Worker), placeto.__version__
        lives = {"max_restarts": DEATHS, "max_task_retries": -1}
        self._actors = [
            worker.options(**lives, **each).remote(number, version)
            for number, each in enumerate(options)
        ]
        self._pool = ActorPool(self._actors)
        self._starting = [actor.start.remote([self._make]) for actor in self._actors]
        self._progress = progress
        self._lives: dict[int, str] = {}
        self._tickets = 0
        self.deaths = 0
        self.size = len(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)

    def submit(self, item: Item) -> int:
        """Hands over an item, as it is now; returns the ticket by which `take` names its result."""
        self._tickets += 1
        self._pool.submit(_do, ([self._make], self._tickets, pickle.dumps(item, PROTOCOL)))
        return self._tickets

    def start(self) -> None:
        """Waits until an actor is ready for work; raises why none will be, or what `make` did."""
        if not self._starting:
            return
        ready, _ = self._ray.wait(self._starting, timeout=PATIENCE)
        if not ready:
            self._progress(
                f"none of {self.size} workers has started for {PATIENCE:g} seconds; does Ray have "
                "the CPUs, or the machine, that they ask for?"
            )
            ready, _ = self._ray.wait(self._starting)
        self._result(lambda: self._ray.get(ready[0]))
        self._starting = []

    def take(self) -> tuple[int, Result]:
        """Waits for the next item that is done, of those handed over; its ticket and result.

        Raises a `PlacetoError` where a worker dies again and again, and what the work raised.
        """
        self.start()
        number, life, ticket, result = self._result(self._pool.get_next_unordered)
        if life != self._lives.get(number, ""):
            self.deaths += 1
            self._progress(f"worker {number} died; another took its place")
        self._lives[number] = life
        return ticket, pickle.loads(result)

    def map(self, items: Iterable[Item]) -> Iterator[tuple[int, Result]]:
        """Numbers of items and their results, as they are done; nothing else may be under way."""
        numbers = {self.submit(item): number for number, item in enumerate(items)}
        for _ in range(len(numbers)):
            ticket, result = self.take()
            yield numbers[ticket], result

    def _result(self, get: Callable[[], Any]) -> Any:
        errors = self._ray.exceptions
        try:
            return get()
        except errors.RayTaskError as error:
            if isinstance(error.cause, PlacetoError):
                raise error.cause from None
            raise
        except errors.RayError as error:
            # Killed, out of memory, its machine gone: nothing that the work did.
            reason = " ".join(str(error).split())[:LONGEST_REASON]
            raise PlacetoError(
                f"a worker died {DEATHS + 1} times; of the last time: {reason}"
            ) from error


def _do(actor: Any, arguments: tuple[list[Any], int, bytes]) -> Any:
    return actor.do.remote(*arguments)


def one_a_node(size: int, cpus: int) -> list[Mapping[str, Any]]:
    """Options of actors with `cpus` each, on machines of their own: none disturbs another.

    Raises:
        PlacetoError: there are fewer machines.
    """
    nodes = [node for node in import_ray().nodes() if node["Alive"]]
    nodes = [node for node in nodes if node["Resources"].get("CPU", 0.0) >= cpus]
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


class Worker:
    """What runs in an actor's process; it is handed pickles, and hands them back."""

    def __init__(self, number: int, version: str) -> None:
        context = import_ray().get_runtime_context()
        self._life = uuid.uuid4().hex if context.was_current_actor_reconstructed else ""
        self._number, self._version = number, version
        self._work: Any = None

    def start(self, make: list[Any]) -> None:
        """Makes what does the work, if it is not made yet, by the pickle that is referred to.

        It is not made by the constructor: what that raises, Ray tells as the actor's death.

        Raises:
            PlacetoError: this machine has another version of the package.
        """
        here = placeto.__version__
        if here != self._version:
            raise PlacetoError(
                f"a worker's machine has placeto {here}, not {self._version}; all need the same"
            )
        if self._work is None:
            self._work = pickle.loads(import_ray().get(make[0]))(self._number)

    def do(self, make: list[Any], ticket: int, item: bytes) -> tuple[int, str, int, bytes]:
        """The actor's number, which of its lives this is, the ticket, and the item's result."""
        self.start(make)
        result = self._work(pickle.loads(item))
        return self._number, self._life, ticket, pickle.dumps(result, PROTOCOL)
