import re
from itertools import combinations

import numpy as np
import pytest

from placeto.reports.page.figures import COLOURS
from placeto.reports.page.render import TEMPLATES

# Machado, Oliveira, Fernandes 2009, severity 1; of linear RGB.
SIGHT = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "all cones": np.eye(3),
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
SCHEMES = dict(
    zip(
        ("light", "dark"), (TEMPLATES / "style.css").read_text().split("@media", 2)[:2], strict=True
    )
)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_devices_can_be_told_apart_whatever_one_sees(scheme, sight):
    colours = re.findall(r"--c\d: #(\w{6});", SCHEMES[scheme])
    assert len(colours) == COLOURS
    seen = [lab(np.asarray(SIGHT[sight]) @ linear(colour)) for colour in colours]
    apart = {
        pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in combinations(range(8), 2)
    }
    # A difference of 2 is the least that one sees side by side.
    assert min(apart.values()) >= 9
    assert min(distance for (_, later), distance in apart.items() if later < 4) >= 14


def linear(colour):
    """Linear RGB of a hexadecimal sRGB colour."""
    c = np.array([int(colour[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear RGB, white D65."""
    xyz = np.asarray(TO_XYZ) @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
