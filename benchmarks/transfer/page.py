"""The study as a Markdown page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.output import table
from benchmarks.transfer import study
from benchmarks.transfer.study import AFTER, FAMILIES, HEURISTICS, SCRATCH, TUNED, ZERO_SHOT

HEADROOM = 0.97
NO_WORSE = 1.001
PROBLEM = ["family", "graph", "cluster", "groups"]
RELATIVE = "step time over the best known"
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
    main = found[found["policy"].isin(["", *study.headline(policies)])]
    clusters = list(dict.fromkeys(run["cluster"] for run in document["runs"]))
    groupings = found["groups"].unique()
    new = unseen_clusters(policies, clusters)
    heading = TITLE.format(
        problems=_problems(found),
        planned=planned,
        graphs=found.groupby(["family", "graph"]).ngroups,
        clusters=", ".join(map("`{}`".format, clusters)),
        groups=" and ".join(map(_groups, groupings)),
        policies="; ".join(
            f"{name} ({', '.join(card['families']) or 'no family'}; {', '.join(card['clusters'])})"
            for name, card in policies.items()
        ),
        machine=document["machine"],
        runs=len(document["runs"]),
    )
    names = f"{', '.join(map('`{}`'.format, sorted(new)))}.\n\n" if new else ""
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
            "A cluster that the policies have not seen": names + step_times(unseen),
            "Seeds of the training": seeds(seen, study.headline(policies)),
        }
        sections |= {f"{title}: groups {_groups(groups)}": text for title, text in parts.items()}
    sections["How fine the groups are"] = fineness(main)
    return heading + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items() if text)


def summary(document: Mapping[str, Any]) -> str:
    """The two tables of what the study is for: the first answer, and the search behind it."""
    found, policies = points(document), document["policies"]
    main = found[found["policy"].isin(["", *study.headline(policies)[:1]])]
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
            for method in ZERO_SHOT:
                if pairs := nearest(own, method):
                    cells = (pairs.get(family, (math.nan, "")) for family in families)
                    texts = (f"{over:.3f} (`{name}`)" if name else "-" for over, name in cells)
                    rows.append([f"{label}`{method}`, {kind}", *texts, str(_problems(own))])
        own_duels = duel_rows(main[main["groups"] == groups], ["all"])
        duel_table += [[label + first, *rest] for first, *rest in own_duels]
    header = ["step time over that of the nearest heuristic", *families, "problems"]
    return f"{table(header, rows)}\n{table(DUELS, duel_table)}"


def step_times(chosen: pd.DataFrame) -> str:
    """Methods by families; and where policies stand against the heuristic that comes nearest."""
    if chosen.empty:
        return ""
    known = searched(chosen)
    families = _families(known)
    rows = [
        [f"`{method}`", *_cells(own, known, families), f"{own['wall_seconds'].median():.2g}"]
        for method, own in sorted(known.groupby("method", sort=False), key=_kind)
    ]
    rows.append(["problems", *(str(_problems(own)) for own in _each(known, families)), ""])
    lines = []
    for method in ZERO_SHOT:
        if found := nearest(chosen, method):
            leads = sum(ratio < 1 for ratio, _ in found.values())
            texts = [f"{family} {ratio:.3f} (`{name}`)" for family, (ratio, name) in found.items()]
            lines.append(
                f"- `{method}` is ahead of every heuristic in {leads} of {len(texts)} families. "
                f"Its step time over that of the nearest heuristic: {', '.join(texts)}.\n"
            )
    return table([RELATIVE, *families, "all", "seconds"], rows) + (
        "\nGeometric means; in brackets on how many problems, where a method has not run on all or "
        "found nothing that fits in memory on some. Seconds: to find a placement, median.\n\n"
        f"Of {_problems(chosen)} problems, searched or not:\n\n{''.join(lines)}"
    )


def nearest(chosen: pd.DataFrame, method: str) -> dict[str, tuple[float, str]]:
    """Family -> a method's mean step time over that of the nearest heuristic, and which that is."""
    means = log_means(chosen)
    if method not in means:
        return {}
    heuristics = means[means.columns.intersection(HEURISTICS)]
    over = np.exp(-heuristics.sub(means[method], axis=0).groupby("family").mean())
    rows = over.dropna(how="all").iterrows()
    return {str(family): (float(row.max()), str(row.idxmax())) for family, row in rows}


def trained_on_the_graph(chosen: pd.DataFrame) -> str:
    """Step times of a policy as it is over those after its training on the graph."""
    learned = chosen[chosen["method"].str.startswith((TUNED, SCRATCH))]
    chosen = chosen[chosen["policy"].isin(learned["policy"])]
    families, means = _families(chosen), log_means(chosen)
    tuned, scratch = (
        [method for method in learned["method"].unique() if method.startswith(kind)]
        for kind in (TUNED, SCRATCH)
    )
    pairs = [(method, other) for other in scratch for method in (*ZERO_SHOT, *tuned)]
    pairs += [(method, other) for other in tuned[-1:] for method in ZERO_SHOT]
    pairs += [(m, f"{m}{AFTER}{other}") for other in (*scratch, *tuned[-1:]) for m in ZERO_SHOT]
    rows = [
        [f"`{method}` over `{other}`", *_means(found, families)[:-1], str(len(found))]
        for method, other in pairs
        if len(found := ratios(means, method, other))
    ]
    return _section(
        ["step time", *families, "problems"],
        rows,
        "\nBelow 1: shorter than after training on the graph itself. The number is that of "
        "episodes, each of which ends in a placement; the best placement met on the way counts. "
        f"`greedy{AFTER}…`: only what the policy finds once it is trained, as it is before. "
        "Other seeds' policies, which were not trained so, are left out here.\n",
    )


def searches(chosen: pd.DataFrame) -> str:
    """A row a budget and family: how `auto` fares against `annealing` in the same seconds."""
    return _section(
        DUELS,
        duel_rows(chosen, ["all", *_families(chosen)]),
        f"\nNo worse: at most {NO_WORSE - 1:.1%} slower. Step time: geometric mean of `auto`'s "
        "over `annealing`'s, equal wall-clock time, both cores, one after the other. Headroom: "
        f"the best known placement is below {HEADROOM} of one device. Best known: of any run, "
        "over `annealing`'s where there is headroom: what a search that always finds it would be "
        "ahead by.\n",
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
            fine, room = (own["ratio"] <= NO_WORSE).sum(), own[own["headroom"]]
            times = own["ratio"], room["ratio"], room["ratio"] / room["relative"]
            ratio, *headroom = (_number(each[(each > 0) & np.isfinite(each)]) for each in times)
            share = f"{fine} ({fine / len(own):.1%})"
            cells = [str(len(own)), share, ratio, str(len(room)), *headroom]
            rows.append([f"{budget:g} s, {name}", *cells])
    return rows


def new_family(found: pd.DataFrame, policies: Mapping[str, Any]) -> pd.DataFrame:
    """Of policies on graphs of families that they have not seen, and of heuristics on these."""
    own = found[found["method"].isin(ZERO_SHOT)]
    there = [
        family not in policies[name]["families"] and cluster in policies[name]["clusters"]
        for name, family, cluster in own[["policy", "family", "cluster"]].itertuples(index=False)
    ]
    own = own[np.array(there, dtype=bool)]
    beside = found[found["number"].isin(own["number"]) & found["method"].isin(HEURISTICS)]
    return pd.concat([beside, own])


def seeds(chosen: pd.DataFrame, names: Sequence[str]) -> str:
    """A row a policy of the headline, if there are several: step time over the best known."""
    known = searched(chosen)
    families, of_policy = _families(known), dict(list(known.groupby("policy")))
    ran = [name for name in names if name in of_policy]
    rows = [
        [f"{name}, `{method}`", *_cells(own, of_policy[name], families)]
        for method in ZERO_SHOT
        for name in ran
        if len(own := of_policy[name][of_policy[name]["method"] == method])
    ]
    return _section([RELATIVE, *families, "all"], rows if len(ran) > 1 else [])


def fineness(chosen: pd.DataFrame) -> str:
    """A row a method: its step time with other groups over that with the first ones."""
    if chosen.empty:
        return ""
    first, *others = chosen["groups"].unique()
    run = ["method", "family", "graph", "cluster", "policy", "seed"]
    finite = chosen[np.isfinite(chosen["step_time"])]
    times = finite.pivot(index=run, columns="groups", values="step_time")
    over = times.reindex(columns=[first, *others]).div(times[first], axis=0)
    families = _families(chosen)
    rows = [
        [f"`{method}`, {_groups(groups)}", *_means(own, families), str(len(own))]
        for groups in others
        for method in chosen["method"].unique()
        if len(own := over.loc[over.index.isin([method], "method"), groups].dropna())
    ]
    return _section([f"step time over that with {_groups(first)}", *families, "all", "runs"], rows)


def points(document: Mapping[str, Any]) -> pd.DataFrame:
    """The runs that found a placement of a problem on which any method found one.

    Adds `number`, of the problem; `best_known`, its shortest step time; `relative`, that of the run
    over it; `searched`, whether a search ran on the problem; `headroom`, whether the best known is
    below 0.97 of one device. A `method` has its budget; what does not fit is infinitely slow.
    """
    found = pd.DataFrame(document["runs"])
    found = found.sort_values("groups", key=lambda groups: groups.str.isdecimal(), kind="stable")
    found["number"] = number = found.groupby(PROBLEM, sort=False).ngroup()
    found["step_time"] = times = found["step_time"].astype(float).where(found["feasible"], math.inf)
    found["best_known"] = times.groupby(number).transform("min")
    found["relative"] = times / found["best_known"]
    found["searched"] = found.groupby("number")["budget_seconds"].transform("count") > 0
    single = times.where(found["method"] == "single", math.inf).groupby(number).transform("min")
    found["headroom"] = found["best_known"] < HEADROOM * single
    budgets = found["budget_seconds"].map("{:g} s".format, na_action="ignore")
    found["method"] = found["method"].str.cat(", " + budgets).fillna(found["method"])
    found = found[np.isfinite(found["best_known"]) & (found["note"] == "")]
    return found.sort_values("number", kind="stable")


def searched(chosen: pd.DataFrame) -> pd.DataFrame:
    """Those of problems that were searched, if any: the best known of others says little."""
    return chosen[chosen["searched"]] if chosen["searched"].any() else chosen


def unseen_clusters(policies: Mapping[str, Any], clusters: Iterable[str]) -> set[str]:
    """Of some clusters those that the headline, if there is one, was not trained on."""
    seen = [set(policies[name]["clusters"]) for name in study.headline(policies)]
    return set(clusters).difference(*seen) if seen else set()


def log_means(chosen: pd.DataFrame) -> pd.DataFrame:
    """Mean logarithms, over policies and seeds, of step times that fit: problems by methods."""
    finite = chosen[np.isfinite(chosen["step_time"])]
    logs = finite.assign(log=np.log(finite["step_time"]))
    return logs.pivot_table("log", PROBLEM, "method")


def ratios(means: pd.DataFrame, method: str, other: str) -> "pd.Series[float]":
    """Step time of a method over that of another, by problem, where both found what fits."""
    both = means.reindex(columns=[method, other])
    return np.exp((both[method] - both[other]).dropna())


def duels(chosen: pd.DataFrame, method: str, other: str) -> pd.DataFrame:
    """Runs of a method with the `ratio` to the other's of the same seed, 1 where neither fits."""
    key = [*PROBLEM, "seed"]
    against = chosen.loc[chosen["method"] == other, [*key, "step_time"]]
    found = chosen[chosen["method"] == method].merge(against, on=key, suffixes=("", "_other"))
    ratio = found["step_time"] / found["step_time_other"]
    fits = np.isfinite(found[["step_time", "step_time_other"]]).any(axis=1)
    return found.assign(ratio=ratio.where(fits, 1.0))


def _section(header: Sequence[str], rows: Sequence[Sequence[str]], remark: str = "") -> str:
    """A table and what there is to say of it; nothing where there are no rows."""
    return table(header, rows) + remark if rows else ""


def _kind(own: tuple[Any, pd.DataFrame]) -> int:
    """Orders runs of methods as the study makes them, whenever they were."""
    method = str(own[0])
    trained = method.startswith((TUNED, SCRATCH))
    kinds = [method in HEURISTICS, method in ZERO_SHOT, trained, AFTER in method, True]
    return kinds.index(True)


def _each(chosen: pd.DataFrame, families: Sequence[str]) -> list[pd.DataFrame]:
    """What is of each family, and all."""
    return [*(chosen[chosen["family"] == family] for family in families), chosen]


def _cells(own: pd.DataFrame, known: pd.DataFrame, families: Sequence[str]) -> list[str]:
    """Of each family and of all: a method's mean, and on how many problems if not on all known."""
    fits = own[np.isfinite(own["step_time"])]
    cells = []
    for ours, there in zip(_each(fits, families), _each(known, families), strict=True):
        mean, ran = _number(ours["relative"]), _problems(ours)
        cells.append(mean if ran in (0, _problems(there)) else f"{mean} ({ran})")
    return cells


def _means(found: "pd.Series[float]", families: Sequence[str]) -> list[str]:
    """Of ratios by problems, the geometric mean of each family and of all."""
    return [_number(each["ratio"]) for each in _each(found.rename("ratio").reset_index(), families)]


def _groups(groups: str) -> str:
    return f"at most {groups}" if groups.isdecimal() else f"`{groups}`"


def _problems(chosen: pd.DataFrame) -> int:
    return chosen["number"].nunique()


def _families(chosen: pd.DataFrame) -> list[str]:
    """Families that there are problems of, in the order of the study."""
    there = set(chosen["family"])
    return [*(f for f in FAMILIES if f in there), *sorted(there - set(FAMILIES))]


def _number(values: "pd.Series[float]") -> str:
    """The geometric mean."""
    return f"{math.exp(np.log(values).mean()):.3f}" if len(values) else "-"
