"""The study as a Markdown page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.output import table
from benchmarks.transfer.points import (
    HEADROOM,
    NO_WORSE,
    duels,
    geometric_mean,
    headline,
    log_means,
    points,
    ratios,
    searched,
    unseen_clusters,
)
from benchmarks.transfer.study import (
    AFTER,
    BEST_OF,
    FAMILIES,
    GREEDY,
    HEURISTICS,
    REFINED,
    SCRATCH,
    TUNED,
)

ZERO_SHOT = (GREEDY, BEST_OF, REFINED)
DUELS = ["`auto` over `annealing`", "runs", "no worse", "step time", "with headroom"]
DUELS += ["their step time", "best known"]
TITLE = """# Policies on graphs that they have not seen

Test graphs of the families alone, which no policy was trained or validated on: {problems} of
{planned} problems so far ({graphs} graphs, clusters {clusters}; groups {groups}). Simulated step
times. {policies} Runs follow one after the other, and each may use all cores: {machine}.

Written by `python -m benchmarks.transfer`; all {runs} runs are in `transfer.json`.
"""


def page(document: Mapping[str, Any], planned: int) -> str:
    """The whole page.

    Args:
        document: the results file.
        planned: how many problems a full study has.
    """
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
        policies=_policies(policies),
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
                pairs = [nearest(means, method, family) for family in families]
                cells = [f"{pair[0]:.3f} (`{pair[1]}`)" if pair else "-" for pair in pairs]
                if any(pairs):
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
        found = {family: nearest(means, method, family) for family in _families(chosen)}
        known = {family: pair for family, pair in found.items() if pair is not None}
        if known:
            leads = sum(ratio < 1 for ratio, _ in known.values())
            texts = [f"{family} {ratio:.3f} (`{name}`)" for family, (ratio, name) in known.items()]
            lines.append(
                f"- `{method}` is ahead of every heuristic in {leads} of {len(texts)} families. "
                f"Its step time over that of the nearest heuristic: {', '.join(texts)}.\n"
            )
    return "".join(lines)


def nearest(means: pd.DataFrame, method: str, family: str) -> tuple[float, str] | None:
    """A method's step time over that of the heuristic that comes nearest to it, and which that is.

    A geometric mean over a family's problems; None where one of the two has not run.
    """
    own = means[means.index.get_level_values("family") == family]
    against = [
        (geometric_mean(found), heuristic)
        for heuristic in HEURISTICS
        if len(found := ratios(own, method, heuristic))
    ]
    return max(against, default=None)


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
        f"`{GREEDY}{AFTER}…`: only what the policy finds once it is trained, as it is before. "
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
    cards = [policies[name] for name in own["policy"]]
    unseen = [f not in card["families"] for f, card in zip(own["family"], cards, strict=True)]
    there = [c in card["clusters"] for c, card in zip(own["cluster"], cards, strict=True)]
    own = own[np.array(unseen, dtype=bool) & np.array(there, dtype=bool)]
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
    """Of each family and of all: the mean, and on how many problems if not on all that are known.

    Args:
        own: runs of a method.
        known: runs of all methods.
        families: the columns.
    """
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


def _policies(policies: Mapping[str, Any]) -> str:
    texts = [
        f"{name} ({', '.join(card['families']) or 'no family'}; {', '.join(card['clusters'])})"
        for name, card in policies.items()
    ]
    return f"Policies, with the families and clusters they were trained on: {'; '.join(texts)}."


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"
