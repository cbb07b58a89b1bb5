"""`placeto verify`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from placeto.cli.arguments import Json
from placeto.cli.output import note, print_result
from placeto.reports.instances import standing_row, standings_table
from placeto.support.errors import PlacetoError
from placeto.zoo.instances import standings

DOES_NOT_FIT = 1


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Says how placements stand beside the best known of named instances.

    They are simulated. The exit status is 1 if one does not fit in memory.

    Attributes:
        files: Placement files, as `placeto place -o` writes them.
        instance: Of which instance they are (see `placeto list`); by default of those with the
            graph and the cluster that a file names.
    """

    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE …")]
    instance: Annotated[str | None, arg(metavar="NAME")] = None
    json: Json = False


def run(arguments: Verify) -> int:
    """Simulates and prints."""
    if not arguments.files:
        raise PlacetoError("no placement file; `placeto place -o FILE` writes one")
    found = [
        (path, each) for path in arguments.files for each in standings(path, arguments.instance)
    ]
    rows = [standing_row(path, each) for path, each in found]
    print_result(arguments.json, {"rows": rows}, [standings_table(rows)])
    if any(each.verdict == "better" for _, each in found):
        note("better than the best known: the page on named instances says how to send it in")
    return 0 if all(each.feasible for _, each in found) else DOES_NOT_FIT
