"""What `import placeto` costs."""

import subprocess
import sys

HEAVY = ("torch", "tensorflow", "keras", "matplotlib", "ray", "tensorboard")


def python(code: str) -> str:
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.stderr == ""
    assert shown.returncode == 0
    return shown.stdout


def test_import_takes_under_a_second():
    code = "import time; t = time.perf_counter(); import placeto; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(3)) < 1


def test_import_loads_no_framework():
    code = f"import sys, placeto; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert python(code).split() == []


def test_nor_does_what_the_package_offers():
    code = (
        "import sys, placeto; [getattr(placeto, name) for name in placeto.__all__];"
        "import gymnasium; gymnasium.make('DevicePlacement-v0', graph='nmt', grouping=8).reset();"
        "import placeto.training; from placeto.models.agents import AGENTS;"
        "[kind.config() for kind in AGENTS.values()];"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python(code).split() == []
