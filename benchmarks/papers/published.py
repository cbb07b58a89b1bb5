"""What the papers print: seconds a training step, by system."""

from dataclasses import dataclass, field

from benchmarks.one_core import SEARCHES

OOM = float("inf")


@dataclass(frozen=True)
class Column:
    """One problem of a table, a bundled graph and a preset, and what was published of it."""

    graph: str
    cluster: str
    seconds: dict[str, float] = field(default_factory=dict)  # by method; infinite: out of memory

    @property
    def name(self) -> str:
        """Both, as a column's heading."""
        return f"{self.graph}, {self.cluster}"


@dataclass(frozen=True)
class Table:
    """A table of problems."""

    key: str
    title: str  # what it is of, and whose
    columns: tuple[Column, ...]
    methods: tuple[str, ...]  # placers; settings follow the name, as in `placeto passing=none`
    remark: str = ""  # what stands below it, a sentence


HEURISTICS = ("metis", "etf", "heft", "m-topo", "m-etf", "m-sct")
LEARNED = ("colocrl", "hierarchical", "placeto", "placeto-2019")
# As in the paper, where episodes start from one placement throughout.
FROM_ONE_DEVICE = "placeto-2019 initial_placement=first"
SETTINGS = "reward=terminal passing=none passing=sweep pooling=all traversal=random algorithm=ppo"
PARTS = tuple(f"{FROM_ONE_DEVICE} {setting}" for setting in SETTINGS.split())
OF_2017 = ("cpu", "single", "scotch", "mincut", "expert", "colocrl")
OF_2018 = ("cpu", "single", "expert", "scotch", "mincut", "hierarchical")


def _column(graph: str, cluster: str, methods: tuple[str, ...], *figures: float | None) -> Column:
    found = zip(methods, figures, strict=True)
    return Column(graph, cluster, {method: value for method, value in found if value is not None})


def _all(first: tuple[str, ...]) -> tuple[str, ...]:
    """Every placer, those of a paper first."""
    return tuple(dict.fromkeys((*first, "random", *HEURISTICS, *SEARCHES)))


TABLES = (
    Table(
        "colocrl",
        "K80s and a Haswell CPU, as in Mirhoseini et al. 2017, arXiv:1706.04972, table 1",
        (
            _column("rnnlm", "k80x2-cpu", OF_2017, 6.89, 1.57, 13.43, 11.94, 3.81, 1.57),
            _column("rnnlm", "k80x4-cpu", OF_2017, 6.89, 1.57, 11.52, 10.44, 4.46, 1.57),
            _column("nmt", "k80x2-cpu", OF_2017, 10.72, OOM, 14.19, 11.54, 4.99, 4.04),
            _column("nmt", "k80x4-cpu", OF_2017, 10.72, OOM, 11.23, 11.78, 4.73, 3.92),
            _column("inception_v3", "k80x2-cpu", OF_2017, 26.21, 4.6, 25.24, 22.88, 11.22, 4.6),
            _column("inception_v3", "k80x4-cpu", OF_2017, 26.21, 4.6, 23.41, 24.52, 10.65, 3.85),
        ),
        _all(OF_2017),
    ),
    Table(
        "hierarchical",
        "K40s and a Haswell CPU, as in Mirhoseini et al. 2018 (ICLR), table 1",
        (
            _column("inception_v3", "k40x2-cpu", OF_2018, 0.61, 0.15, 0.15, 0.93, 0.82, 0.13),
            _column("resnet50", "k40x2-cpu", OF_2018, None, 1.18, 1.18, 6.27, 2.92, 1.18),
            _column("rnnlm", "k40x2-cpu", OF_2018, 6.89, 1.57, 1.57, 5.62, 5.21, 1.57),
            _column("nmt", "k40x2-cpu", OF_2018, 6.46, OOM, 2.13, 3.21, 5.34, 0.84),
            _column("nmt_4", "k40x4-cpu", OF_2018, 10.68, OOM, 3.64, 11.18, 11.63, 1.69),
            _column("nmt_8", "k40x8-cpu", OF_2018, 11.52, OOM, 3.88, 17.85, 19.01, 4.07),
        ),
        _all(OF_2018),
    ),
    Table(
        "placeto-2019",
        "K80s, the graphs of Addanki et al. 2019, arXiv:1906.08879",
        tuple(
            Column(graph, cluster)
            for graph in ("inception_v3", "nasnet", "nmt")
            for cluster in ("k80x2", "k80x4")
        ),
        ("single", "expert", *SEARCHES, FROM_ONE_DEVICE),
        "Nothing stands after a slash here: of this paper's table, only the factor of up to 6.1 in "
        "its abstract could be verified; see the last section.",
    ),
    Table(
        "parts",
        "What the parts of Placeto are worth",
        tuple(Column(graph, "k80x4") for graph in ("inception_v3", "nmt")),
        ("placeto-2019", FROM_ONE_DEVICE, *PARTS),
    ),
    Table(
        "today",
        "Clusters of today",
        tuple(
            Column(graph, cluster)
            for graph in ("inception_v3", "nmt_4", "transformer")
            for cluster in ("v100x8-nvlink", "a100x8", "a100x2-v100x2-cpu")
        ),
        _all(("cpu", "single", "expert", "scotch", "mincut")),
    ),
)
