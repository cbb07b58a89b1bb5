"""What was measured, as a table of numbers that can be compared."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.transfer.study import FAMILIES

HEADROOM = 0.97
NO_WORSE = 1.001
PROBLEM = ["family", "graph", "cluster", "groups"]


def points(document: Mapping[str, Any]) -> pd.DataFrame:
    """The runs that found a placement of a problem on which any method found one.

    Problems with groups by a rule come before those with a number of them.

    Returns:
        Columns of the results file, and `number`, of the problem; `method`, with its budget;
        `step_time`, infinite where nothing was found that fits in memory; `best_known`, the
        shortest of any run on the problem; `relative`, step time over that; `searched`, whether a
        search ran on the problem; `headroom`, whether the best known is below 0.97 of one device.
    """
    found = pd.DataFrame(document["runs"])
    found = found.sort_values("groups", key=lambda groups: groups.str.isdecimal(), kind="stable")
    found["number"] = found.groupby(PROBLEM, sort=False).ngroup()
    times = found["step_time"].astype(float).where(found["feasible"], math.inf)
    found["step_time"] = times
    found["best_known"] = times.groupby(found["number"]).transform("min")
    found["searched"] = found.groupby("number")["budget_seconds"].transform("count") > 0
    single = times.where(found["method"] == "single", math.inf)
    single = single.groupby(found["number"]).transform("min")
    found["headroom"] = found["best_known"] < HEADROOM * single
    found["method"] = [
        method if budget is None or math.isnan(budget) else f"{method}, {budget:g} s"
        for method, budget in zip(found["method"], found["budget_seconds"], strict=True)
    ]
    found = found[np.isfinite(found["best_known"]) & (found["note"] == "")]
    found = found.assign(relative=found["step_time"] / found["best_known"])
    return found.sort_values("number", kind="stable")


def searched(chosen: pd.DataFrame) -> pd.DataFrame:
    """Those of problems that were searched, if any: the best known of others says little."""
    return chosen[chosen["searched"]] if chosen["searched"].any() else chosen


def headline(policies: Mapping[str, Any]) -> list[str]:
    """Policies that have seen graphs of every family."""
    return [name for name, card in policies.items() if set(card["families"]) >= set(FAMILIES)]


def unseen_clusters(policies: Mapping[str, Any], clusters: Iterable[str]) -> set[str]:
    """Of some clusters those that no policy of the headline was trained on."""
    seen = {cluster for name in headline(policies) for cluster in policies[name]["clusters"]}
    return set(clusters) - seen


def geometric_mean(values: "pd.Series[float]") -> float:
    """The geometric mean; NaN of nothing."""
    return math.exp(np.log(values).mean()) if len(values) else math.nan


def log_means(chosen: pd.DataFrame) -> pd.DataFrame:
    """Mean logarithms of step times that fit: a row a problem, a column a method.

    Where a method has several runs (policies, seeds), these are their geometric means.
    """
    finite = chosen[np.isfinite(chosen["step_time"])]
    logs = np.log(finite["step_time"]).groupby([finite[key] for key in [*PROBLEM, "method"]])
    return logs.mean().unstack("method")


def ratios(means: pd.DataFrame, method: str, other: str) -> "pd.Series[float]":
    """Step time of a method over that of another, by problem, where both found what fits."""
    if not {method, other} <= set(means.columns):
        return means.iloc[:0, :0].sum(axis=1)
    return np.exp((means[method] - means[other]).dropna())


def duels(chosen: pd.DataFrame, method: str, other: str) -> pd.DataFrame:
    """Runs of a method, each with its step time over the other's of the same seed, `ratio`.

    What does not fit in memory is infinitely slow; where neither fits they are equal.
    """
    key = [*PROBLEM, "seed"]
    against = chosen.loc[chosen["method"] == other, [*key, "step_time"]]
    found = chosen[chosen["method"] == method].merge(against, on=key, suffixes=("", "_other"))
    ratio = found["step_time"] / found["step_time_other"]
    fits = np.isfinite(found[["step_time", "step_time_other"]]).any(axis=1)
    return found.assign(ratio=ratio.where(fits, 1.0))
