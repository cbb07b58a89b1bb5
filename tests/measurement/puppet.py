"""A worker and a driver without TensorFlow: the path of the GraphDef says what becomes of a run.

- `ran`: a step takes a second, and one more for each op on the second device.
- `raises`: it fails. `exhausts`: it fails for want of memory. `refuses`: it is of another graph.
- `hangs`: it never ends.
- `crashes`: the driver dies. `kills N`: process N dies, and it hangs; `kills N, raises`: it fails.

Where the environment's `TAKEN` names a file, the worker that removes it finds its port in use.
"""

import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

# By its path: the package would be imported with it, and there are dozens of puppets.
PARENT = Path(__file__).parents[2] / "placeto" / "measurement" / "parent.py"


def act(parent: Any, request: dict[str, Any]) -> None:
    """Does as the request says."""
    first, *rest = request["placements"][0]["path"].split(", ")
    kind, *numbers = first.split()
    parent.send({"stage": "running its steps"})
    if kind == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "kills":
        os.kill(int(numbers[0]), signal.SIGKILL)
    if "raises" in (kind, *rest):
        parent.send({"failed": "no luck", "exhausted": False})
    elif kind == "exhausts":
        parent.send({"failed": "OOM", "exhausted": True})
    elif kind == "refuses":
        parent.send({"refused": "another graph"})
    elif kind == "ran":
        steps = [1.0 + sum(each["ops"].values()) for each in request["placements"]]
        traces = [b"trace"] * request["traces"]
        count = request["effort"]["steps"]
        told = {"samples": [steps] * count, "paces": [1.0] * count, "least": request["least"]}
        parent.send({**told, "traces": len(traces)}, *traces)


if __name__ == "__main__":
    parent = runpy.run_path(str(PARENT))["Parent"](sys.argv[1:])
    settings = parent.receive()
    if settings["job"]:
        parent.send({"port": 1})
        parent.receive()
        try:
            os.remove(os.environ.get("TAKEN", ""))
        except FileNotFoundError:
            parent.send({"target": ""})
        else:
            parent.send({"error": "cannot serve on port 1: is it in use?"})
    else:
        parent.receive()
        parent.send({"ready": True})
    while True:
        act(parent, parent.receive())
