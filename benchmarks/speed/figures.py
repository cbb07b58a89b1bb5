"""Figures as text, and ratios of what was measured together."""

from typing import Any

Document = dict[str, Any]


def ratio(row: Document, name: str, of: str = "fastest") -> float:
    """How many steps a form of an environment takes while the reference takes one."""
    return float(row["reference"][of] / row[name][of])


def number(value: float) -> str:
    """Three significant digits, with commas: 0.0123, 1.23, 12,300."""
    rounded = float(f"{value:.3g}")
    if rounded >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:#.3g}" if rounded else "0"
