"""The study as a Markdown page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.output import table
from benchmarks.transfer.study import AFTER, FAMILIES, HEURISTICS, SCRATCH, TUNED, ZERO_SHOT

HEADROOM = 0.97
NO_WORSE = 1.001
PROBLEM = ["family", "graph", "cluster", "groups"]
DUELS = ["`auto` over `annealing`", "runs", "no worse", "step time", "with headroom"]
DUELS += ["their step time", "best known"]
TITLE = """# Policies on graphs that they have not seen

Test graphs of the families alone, which no policy was trained or validated on: {problems} of
{planned} problems so far ({graphs} graphs, clusters {clusters}; groups {groups}). Simulated step
times. Policies, with the families and clusters they were trained on: {policies}. Runs follow one \
after the other, and each may use all cores: {machine}.

Written by `python -m benchmarks.transfer`; all {runs} runs are in `transfer.json`.
"""


def page(document: Mapping[str, Any], planned: int) -> str:
    """The whole page, of a results file; a full study has so many problems as are planned."""
    found, policies = points(document), document["policies"]
    clusters = list(dict.fromkeys(run["cluster"] for run in document["runs"]))
    new = unseen_clusters(policies, clusters) if headline(policies) else set()
    main = found[found["policy"].isin(["", *headline(policies)])]
    groupings = found["groups"].unique()
    heading = TITLE.format(
        problems=found["number"].nunique(),
        planned=planned,
        graphs=found.groupby(["family", "graph"]).ngroups,
        clusters=", ".join(f"`{cluster}`" for cluster in clusters),
        groups=" and ".join(map(_groups, groupings)),
        policies="; ".join(
            f"{name} ({', '.join(card['families']) or 'no family'}; {', '.join(card['clusters'])})"
            for name, card in policies.items()
        ),
        machine=document["machine"],
        runs=len(document["runs"]),
    )
    names = ", ".join(f"`{cluster}`" for cluster in sorted(new))
    sections: dict[str, str] = {}
    for groups in groupings:
        own = main[main["groups"] == groups]
        seen, unseen = own[~own["cluster"].isin(new)], own[own["cluster"].isin(new)]
        apart = new_family(found[found["groups"] == groups], policies)
        parts = {
            "Families and clusters as in training": step_times(seen),
            "As it is, and trained on the graph": trained_on_the_graph(seen),
            "`auto` against `annealing`": searches(own),
            "A family that the policy has not seen": step_times(apart),
            "A cluster that the policies have not seen": (f"{names}.\n\n" if new else "")
            + step_times(unseen),
            "Seeds of the training": seeds(seen, headline(policies)),
        }
        sections |= {f"{title}: groups {_groups(groups)}": text for title, text in parts.items()}
    sections["How fine the groups are"] = fineness(main)
    return heading + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items() if text)


def summary(document: Mapping[str, Any]) -> str:
    """The two tables of what the study is for: the first answer, and the search behind it."""
    found, policies = points(document), document["policies"]
    main = found[found["policy"].isin(["", *headline(policies)[:1]])]
    is_new = main["cluster"].isin(unseen_clusters(policies, found["cluster"]))
    kinds = {
        "as in training": main[~is_new],
        "on an unseen cluster": main[is_new],
        "of an unseen family": new_family(found, policies),
    }
    families = _families(found)
    rows, duel_table = [], []
    for groups in found["groups"].unique():
        label = f"groups {_groups(groups)}: "
        for kind, of_kind in kinds.items():
            own = of_kind[of_kind["groups"] == groups]
            means = log_means(own)
            for method in ZERO_SHOT:
                pairs = nearest(means, method)
                texts = {key: f"{over:.3f} (`{name}`)" for key, (over, name) in pairs.items()}
                cells = [texts.get(family, "-") for family in families]
                if pairs:
                    rows.append([f"{label}`{method}`, {kind}", *cells, str(_problems(own))])
        duel_rows_of = duel_rows(main[main["groups"] == groups], ["all"])
        duel_table += [[label + row[0], *row[1:]] for row in duel_rows_of]
    header = ["step time over that of the nearest heuristic", *families, "problems"]
    return f"{table(header, rows)}\n{table(DUELS, duel_table)}"


def step_times(chosen: pd.DataFrame) -> str:
    """Geometric means of step time over the best known: a row a method, a column a family.

    Of problems that were searched, if there are any.
    """
    if chosen.empty:
        return ""
    known = searched(chosen)
    families = _families(known)
    rows = []
    for method in sorted(known["method"].unique(), key=_kind):
        own = known[known["method"] == method]
        seconds = f"{own['wall_seconds'].median():.2g}"
        rows.append([f"`{method}`", *_cells(own, known, families), seconds])
    counts = [str(_problems(known[known["family"] == family])) for family in families]
    rows.append(["problems", *counts, str(_problems(known)), ""])
    return table(["step time over the best known", *families, "all", "seconds"], rows) + (
        "\nGeometric means; in brackets on how many problems, where a method has not run on all or "
        "found nothing that fits in memory on some. Seconds: to find a placement, median.\n\n"
        f"Of {_problems(chosen)} problems, searched or not:\n\n{ahead(chosen)}"
    )


def ahead(chosen: pd.DataFrame) -> str:
    """Where the policy as it is stands against the heuristic that comes nearest to it."""
    lines, means = [], log_means(chosen)
    for method in ZERO_SHOT:
        if found := nearest(means, method):
            leads = sum(ratio < 1 for ratio, _ in found.values())
            texts = [f"{family} {ratio:.3f} (`{name}`)" for family, (ratio, name) in found.items()]
            lines.append(
                f"- `{method}` is ahead of every heuristic in {leads} of {len(texts)} families. "
                f"Its step time over that of the nearest heuristic: {', '.join(texts)}.\n"
            )
    return "".join(lines)


def nearest(means: pd.DataFrame, method: str) -> dict[str, tuple[float, str]]:
    """Family -> a method's step time over that of the nearest heuristic, and which that is.

    A geometric mean over the problems on which both have run, of families where there are any.
    """
    if method not in means:
        return {}
    heuristics = means[[name for name in HEURISTICS if name in means]]
    over = np.exp(-heuristics.sub(means[method], axis=0).groupby("family").mean())
    rows = over.dropna(how="all").iterrows()
    return {str(family): (float(row.max()), str(row.idxmax())) for family, row in rows}


def trained_on_the_graph(chosen: pd.DataFrame) -> str:
    """Step times of a policy as it is over those after its training on the graph."""
    learned = chosen[chosen["method"].str.startswith((TUNED, SCRATCH))]
    chosen = chosen[chosen["policy"].isin(learned["policy"])]
    families, means = _families(chosen), log_means(chosen)
    methods = learned["method"].unique()
    tuned = [method for method in methods if method.startswith(TUNED)]
    scratch = [method for method in methods if method.startswith(SCRATCH)]
    pairs = [(method, other) for other in scratch for method in (*ZERO_SHOT, *tuned)]
    pairs += [(method, other) for other in tuned[-1:] for method in ZERO_SHOT]
    pairs += [(m, f"{m}{AFTER}{other}") for other in (*scratch, *tuned[-1:]) for m in ZERO_SHOT]
    rows = [
        [f"`{method}` over `{other}`", *_means(found, families)[:-1], str(len(found))]
        for method, other in pairs
        if len(found := ratios(means, method, other))
    ]
    if not rows:
        return ""
    return table(["step time", *families, "problems"], rows) + (
        "\nBelow 1: shorter than after training on the graph itself. The number is that of "
        "episodes, each of which ends in a placement; the best placement met on the way counts. "
        f"`greedy{AFTER}…`: only what the policy finds once it is trained, as it is before. "
        "Other seeds' policies, which were not trained so, are left out here.\n"
    )


def searches(chosen: pd.DataFrame) -> str:
    """A row a budget and family: how `auto` fares against `annealing` in the same seconds."""
    rows = duel_rows(chosen, ["all", *_families(chosen)])
    if not rows:
        return ""
    return table(DUELS, rows) + (
        f"\nNo worse: at most {NO_WORSE - 1:.1%} slower. Step time: geometric mean of `auto`'s "
        "over `annealing`'s, equal wall-clock time, both cores, one after the other. Headroom: "
        f"the best known placement is below {HEADROOM} of one device. Best known: of any run, "
        "over `annealing`'s where there is headroom: what a search that always finds it would be "
        "ahead by.\n"
    )


def duel_rows(chosen: pd.DataFrame, families: Sequence[str]) -> list[list[str]]:
    """Of each budget and family, or `all`, what `searches` shows."""
    rows = []
    autos = [method for method in chosen["method"].unique() if method.startswith("auto, ")]
    for budget in sorted(float(method.split()[1]) for method in autos):
        found = duels(chosen, f"auto, {budget:g} s", f"annealing, {budget:g} s")
        for name in families:
            own = found if name == "all" else found[found["family"] == name]
            if own.empty:
                continue
            fine, room = int((own["ratio"] <= NO_WORSE).sum()), own[own["headroom"]]
            times = own["ratio"], room["ratio"], room["ratio"] / room["relative"]
            ratio, with_headroom, best = (
                _number(geometric_mean(each[(each > 0) & np.isfinite(each)])) for each in times
            )
            share = f"{fine} ({fine / len(own):.1%})"
            cells = [str(len(own)), share, ratio, str(len(room)), with_headroom, best]
            rows.append([f"{budget:g} s, {name}", *cells])
    return rows


def new_family(found: pd.DataFrame, policies: Mapping[str, Any]) -> pd.DataFrame:
    """Of policies on graphs of families that they have not seen, and of heuristics on these."""
    own = found[found["method"].isin(ZERO_SHOT)]
    keys = zip(own["policy"], own["family"], own["cluster"], strict=True)
    there = [
        family not in policies[name]["families"] and cluster in policies[name]["clusters"]
        for name, family, cluster in keys
    ]
    own = own[np.array(there, dtype=bool)]
    beside = found[found["number"].isin(own["number"]) & found["method"].isin(HEURISTICS)]
    return pd.concat([beside, own])


def seeds(chosen: pd.DataFrame, names: Sequence[str]) -> str:
    """A row a policy of the headline: step time over the best known."""
    chosen = searched(chosen)
    ran = [name for name in names if (chosen["policy"] == name).any()]
    if len(ran) < 2:
        return ""
    families, rows = _families(chosen), []
    for method in ZERO_SHOT:
        for name in ran:
            of_policy = chosen[chosen["policy"] == name]
            own = of_policy[of_policy["method"] == method]
            if not own.empty:
                rows.append([f"{name}, `{method}`", *_cells(own, of_policy, families)])
    return table(["step time over the best known", *families, "all"], rows)


def fineness(chosen: pd.DataFrame) -> str:
    """A row a method: its step time with other groups over that with the first ones."""
    if chosen.empty:
        return ""
    finite = chosen[np.isfinite(chosen["step_time"])]
    first, *others = chosen["groups"].unique()
    families = _families(chosen)
    run = ["method", "family", "graph", "cluster", "policy", "seed"]
    times = finite.pivot(index=run, columns="groups", values="step_time")
    times = times.reindex(columns=[first, *others])
    rows = []
    for groups in others:
        found = (times[groups] / times[first]).dropna()
        for method in chosen["method"].unique():
            own = found[found.index.get_level_values("method") == method]
            if len(own):
                label = f"`{method}`, {_groups(groups)}"
                rows.append([label, *_means(own, families), str(len(own))])
    if not rows:
        return ""
    return table([f"step time over that with {_groups(first)}", *families, "all", "runs"], rows)


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


def _kind(method: str) -> int:
    """Orders methods as the study runs them, whenever they were."""
    if method in HEURISTICS:
        return 0
    if method in ZERO_SHOT:
        return 1
    if AFTER in method:
        return 3
    return 2 if method.startswith((TUNED, SCRATCH)) else 4


def _cells(own: pd.DataFrame, known: pd.DataFrame, families: list[str]) -> list[str]:
    """Of each family and of all: a method's mean, and on how many problems if not on all known."""
    cells = []
    for column in [*([family] for family in families), families]:
        ours, there = (each[each["family"].isin(column)] for each in (own, known))
        fits = ours[np.isfinite(ours["step_time"])]
        mean, ran = _number(geometric_mean(fits["relative"])), _problems(fits)
        cells.append(mean if ran in (0, _problems(there)) else f"{mean} ({ran})")
    return cells


def _means(found: "pd.Series[float]", families: Sequence[str]) -> list[str]:
    """Of ratios by problems, the geometric mean of each family and of all."""
    of = found.index.get_level_values("family")
    own = [found[of == family] for family in families]
    return [_number(geometric_mean(each)) for each in (*own, found)]


def _groups(groups: str) -> str:
    return f"at most {groups}" if groups.isdecimal() else f"`{groups}`"


def _problems(chosen: pd.DataFrame) -> int:
    return chosen["number"].nunique()


def _families(chosen: pd.DataFrame) -> list[str]:
    """Families that there are problems of, in the order of the study."""
    there = set(chosen["family"])
    return [*(f for f in FAMILIES if f in there), *sorted(there - set(FAMILIES))]


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"
