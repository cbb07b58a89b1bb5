"""The study as a Markdown page."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.markdown import table
from benchmarks.transfer.points import (
    HEADROOM,
    NO_WORSE,
    Point,
    Problem,
    duels,
    geometric_mean,
    headline,
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
    problems = {point.problem for point in found}
    clusters = list(dict.fromkeys(run["cluster"] for run in document["runs"]))
    new = unseen_clusters(policies, clusters) if headline(policies) else set()
    main = [p for p in found if p.policy == "" or p.policy in headline(policies)]
    groupings = list(dict.fromkeys(point.groups for point in found))
    heading = TITLE.format(
        problems=len(problems),
        planned=planned,
        graphs=len({problem[:2] for problem in problems}),
        clusters=", ".join(f"`{cluster}`" for cluster in clusters),
        groups=" and ".join(_groups(groups) for groups in groupings),
        policies=_policies(policies),
        machine=document["machine"],
        runs=len(document["runs"]),
    )
    sections = {}
    for groups in groupings:
        of_groups = [point for point in main if point.groups == groups]
        seen = [point for point in of_groups if point.cluster not in new]
        unseen = [point for point in of_groups if point.cluster in new]
        apart = new_family([p for p in found if p.groups == groups], policies)
        parts = {
            "Families and clusters as in training": step_times(seen),
            "As it is, and trained on the graph": trained_on_the_graph(seen),
            "`auto` against `annealing`": searches(of_groups),
            "A family that the policy has not seen": step_times(apart),
            "A cluster that the policies have not seen": _clusters(new) + step_times(unseen),
            "Seeds of the training": seeds(seen, headline(policies)),
        }
        sections |= {f"{title}: groups {_groups(groups)}": text for title, text in parts.items()}
    sections["How fine the groups are"] = fineness(main)
    return heading + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items() if text)


def summary(document: Mapping[str, Any]) -> str:
    """The two tables of what the study is for: the first answer, and the search behind it."""
    found, policies = points(document), document["policies"]
    main = [p for p in found if p.policy == "" or p.policy in headline(policies)[:1]]
    new = unseen_clusters(policies, {point.cluster for point in found})
    kinds = {
        "as in training": [p for p in main if p.cluster not in new],
        "on an unseen cluster": [p for p in main if p.cluster in new],
        "of an unseen family": new_family(found, policies),
    }
    families = _families(found)
    rows = []
    for groups in dict.fromkeys(point.groups for point in found):
        for kind, points_of_kind in kinds.items():
            own = [point for point in points_of_kind if point.groups == groups]
            for method in ZERO_SHOT:
                pairs = [nearest(own, method, family) for family in families]
                cells = [f"{pair[0]:.3f} (`{pair[1]}`)" if pair else "-" for pair in pairs]
                name = f"groups {_groups(groups)}: `{method}`, {kind}"
                if any(pairs):
                    rows.append([name, *cells, str(len(_problems(own, families)))])
    header = ["step time over that of the nearest heuristic", *families, "problems"]
    return table(header, rows) + f"\n{duel_table(main)}"


def duel_table(chosen: Sequence[Point]) -> str:
    """A row a number of groups and a budget: `auto` against `annealing` on all problems."""
    rows = [
        [f"groups {_groups(groups)}: {row[0]}", *row[1:]]
        for groups in dict.fromkeys(point.groups for point in chosen)
        for row in duel_rows([point for point in chosen if point.groups == groups], ["all"])
    ]
    return table(DUELS, rows)


def step_times(chosen: Sequence[Point]) -> str:
    """Geometric means of step time over the best known: a row a method, a column a family.

    Of problems that were searched, if there are any.
    """
    if not chosen:
        return ""
    known = searched(chosen)
    families = _families(known)
    columns = [*([family] for family in families), families]
    rows = [
        [
            f"`{method}`",
            *(_cell(known, method, column) for column in columns),
            _seconds([point.wall_seconds for point in known if point.method == method]),
        ]
        for method in sorted(dict.fromkeys(point.method for point in known), key=_kind)
    ]
    counts = [str(len(_problems(known, column))) for column in columns]
    rows.append(["problems", *counts, ""])
    return table(["step time over the best known", *families, "all", "seconds"], rows) + (
        "\nGeometric means; in brackets on how many problems, where a method has not run on all or "
        "found nothing that fits in memory on some. Seconds: to find a placement, median.\n\n"
        f"Of {len({point.problem for point in chosen})} problems, searched or not:\n\n"
        f"{ahead(chosen, _families(chosen))}"
    )


def ahead(chosen: Sequence[Point], families: Sequence[str]) -> str:
    """Where the policy as it is stands against the heuristic that comes nearest to it."""
    lines = []
    for method in ZERO_SHOT:
        found = {family: nearest(chosen, method, family) for family in families}
        known = {family: pair for family, pair in found.items() if pair is not None}
        if known:
            leads = sum(ratio < 1 for ratio, _ in known.values())
            texts = [f"{family} {ratio:.3f} (`{name}`)" for family, (ratio, name) in known.items()]
            lines.append(
                f"- `{method}` is ahead of every heuristic in {leads} of {len(texts)} families. "
                f"Its step time over that of the nearest heuristic: {', '.join(texts)}.\n"
            )
    return "".join(lines)


def nearest(chosen: Sequence[Point], method: str, family: str) -> tuple[float, str] | None:
    """A method's step time over that of the heuristic that comes nearest to it, and which that is.

    A geometric mean over a family's problems; None where one of the two has not run.
    """
    own = [point for point in chosen if point.family == family]
    against = [
        (geometric_mean(list(found.values())), heuristic)
        for heuristic in HEURISTICS
        if (found := ratios(own, method, heuristic))
    ]
    return max(against, default=None)


def trained_on_the_graph(chosen: Sequence[Point]) -> str:
    """Step times of a policy as it is over those after its training on the graph."""
    learned = [p for p in chosen if p.method.startswith((TUNED, SCRATCH))]
    policies = {point.policy for point in learned}
    chosen = [point for point in chosen if point.policy in policies]
    families = _families(chosen)
    methods = dict.fromkeys(point.method for point in learned)
    tuned = [method for method in methods if method.startswith(TUNED)]
    scratch = [method for method in methods if method.startswith(SCRATCH)]
    pairs = [(method, other) for other in scratch for method in (*ZERO_SHOT, *tuned)]
    pairs += [(method, other) for other in tuned[-1:] for method in ZERO_SHOT]
    pairs += [(m, f"{m}{AFTER}{other}") for other in (*scratch, *tuned[-1:]) for m in ZERO_SHOT]
    rows = []
    for method, other in pairs:
        found = ratios(chosen, method, other)
        means = [
            _number(geometric_mean([r for problem, r in found.items() if problem[0] == family]))
            for family in families
        ]
        if found:
            rows.append([f"`{method}` over `{other}`", *means, str(len(found))])
    if not rows:
        return ""
    return table(["step time", *families, "problems"], rows) + (
        "\nBelow 1: shorter than after training on the graph itself. The number is that of "
        "episodes, each of which ends in a placement; the best placement met on the way counts. "
        f"`{GREEDY}{AFTER}…`: only what the policy finds once it is trained, as it is before. "
        "Other seeds' policies, which were not trained so, are left out here.\n"
    )


def searches(chosen: Sequence[Point]) -> str:
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


def duel_rows(chosen: Sequence[Point], families: Sequence[str]) -> list[list[str]]:
    """Of each budget and family, or `all`, what `searches` shows."""
    rows = []
    budgets = sorted(
        {float(p.method.split()[1]) for p in chosen if p.method.startswith("auto, ")},
    )
    for budget in budgets:
        found = duels(chosen, f"auto, {budget:g} s", f"annealing, {budget:g} s")
        for name in families:
            own = [(point, ratio) for point, ratio in found if name in ("all", point.family)]
            if not own:
                continue
            fine = sum(ratio <= NO_WORSE for _, ratio in own)
            room = [(point, ratio) for point, ratio in own if point.has_headroom]
            rows.append(
                [
                    f"{budget:g} s, {name}",
                    str(len(own)),
                    f"{fine} ({fine / len(own):.1%})",
                    _number(geometric_mean(_finite([ratio for _, ratio in own]))),
                    str(len(room)),
                    _number(geometric_mean(_finite([ratio for _, ratio in room]))),
                    _number(geometric_mean(_finite([r / p.relative for p, r in room]))),
                ]
            )
    return rows


def new_family(found: Sequence[Point], policies: Mapping[str, Any]) -> list[Point]:
    """Of policies on graphs of families that they have not seen, and of heuristics on these."""
    own = [
        point
        for point in found
        if point.method in ZERO_SHOT
        and point.family not in policies[point.policy]["families"]
        and point.cluster in policies[point.policy]["clusters"]
    ]
    problems = {point.problem for point in own}
    beside = [p for p in found if p.problem in problems and p.method in HEURISTICS]
    return [*beside, *own]


def seeds(chosen: Sequence[Point], names: Sequence[str]) -> str:
    """A row a policy of the headline: step time over the best known."""
    chosen = searched(chosen)
    found = {name: [point for point in chosen if point.policy == name] for name in names}
    ran = {name: own for name, own in found.items() if own}
    if len(ran) < 2:
        return ""
    families = _families(chosen)
    columns = [*([family] for family in families), families]
    rows = [
        [f"{name}, `{method}`", *(_cell(own, method, column) for column in columns)]
        for method in ZERO_SHOT
        for name, own in ran.items()
        if any(point.method == method for point in own)
    ]
    return table(["step time over the best known", *families, "all"], rows)


def fineness(chosen: Sequence[Point]) -> str:
    """A row a method: its step time with other groups over that with the first ones."""
    if not chosen:
        return ""
    first, *others = dict.fromkeys(point.groups for point in chosen)
    families = _families(chosen)
    rows = []
    for groups in others:
        for method in dict.fromkeys(point.method for point in chosen):
            times: dict[str, dict[tuple[Any, ...], float]] = {first: {}, groups: {}}
            for p in chosen:
                if p.method == method and p.groups in times and math.isfinite(p.step_time):
                    times[p.groups][*p.problem[:3], p.policy, p.seed] = p.step_time
            found = {
                key: time / times[first][key]
                for key, time in times[groups].items()
                if key in times[first]
            }
            if found:
                means = [
                    _number(geometric_mean([found[key] for key in found if key[0] in column]))
                    for column in (*([family] for family in families), families)
                ]
                rows.append([f"`{method}`, {_groups(groups)}", *means, str(len(found))])
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


def _cell(chosen: Sequence[Point], method: str, families: Sequence[str]) -> str:
    own = [p for p in chosen if p.method == method and p.family in families]
    fits = [point for point in own if math.isfinite(point.step_time)]
    if not fits:
        return "-"
    ran, planned = len({point.problem for point in fits}), len(_problems(chosen, families))
    mean = _number(geometric_mean([point.relative for point in fits]))
    return mean if ran == planned else f"{mean} ({ran})"


def _groups(groups: str) -> str:
    return f"at most {groups}" if groups.isdecimal() else f"`{groups}`"


def _problems(chosen: Sequence[Point], families: Sequence[str]) -> set[Problem]:
    return {point.problem for point in chosen if point.family in families}


def _families(chosen: Sequence[Point]) -> list[str]:
    """Families that there are problems of, in the order of the study."""
    there = {point.family for point in chosen}
    return [*(f for f in FAMILIES if f in there), *sorted(there - set(FAMILIES))]


def _policies(policies: Mapping[str, Any]) -> str:
    texts = [
        f"{name} ({', '.join(card['families']) or 'no family'}; {', '.join(card['clusters'])})"
        for name, card in policies.items()
    ]
    return f"Policies, with the families and clusters they were trained on: {'; '.join(texts)}."


def _clusters(new: set[str]) -> str:
    return f"{', '.join(f'`{cluster}`' for cluster in sorted(new))}.\n\n" if new else ""


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if 0 < value < math.inf]


def _seconds(values: Sequence[float]) -> str:
    return f"{median(values):.2g}"


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"
