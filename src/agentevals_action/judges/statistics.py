"""How judges agree with people: estimates with their bounds. Needs the extra `judges`: only `judge
calibrate` imports it, and the gate reads the numbers alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentevals_action.errors import InvalidInput
from agentevals_action.judges.calibrate import JudgedAnswer
from agentevals_action.model.judge import Agreement, Estimate, JudgeCalibration
from agentevals_action.model.result import Key

try:
    from scipy import stats
    from statsmodels.stats.inter_rater import cohens_kappa
    from statsmodels.stats.proportion import proportion_confint
except ModuleNotFoundError:
    raise InvalidInput(
        "`judge calibrate` needs scipy and statsmodels, which are not installed",
        "`pip install 'agentevals-action[judges]'`",
    ) from None

#: Counts of judgements. The rows are people's labels, the columns the judge's verdicts; pass is
#: before fail.
Table = Sequence[Sequence[float]]
#: The confidence of a one-sided bound, and of an interval.
CONFIDENCE = 0.95
_RESAMPLES = 10_000
_SEED = 20_261_128  # the same labels and verdicts give the same file
_DIGITS = 4  # of what is stored


def measure_judges(
    answers: Sequence[JudgedAnswer], longer: Iterable[JudgedAnswer]
) -> Mapping[str, JudgeCalibration]:
    """What the opinions without errors show of each judge that gave such opinions, by its key;
    `longer` are pairs with filler."""
    by_judge: dict[str, list[JudgedAnswer]] = {}
    for answer in answers:
        if answer.known:
            by_judge.setdefault(answer.key, []).append(answer)
    stay_right: dict[str, list[JudgedAnswer]] = {}
    with_filler = {answer.label.key: answer.opinions for answer in longer}
    for pair in (answer for answer in answers if answer.type == "pairwise"):
        both = zip(pair.opinions, with_filler[pair.label.key], strict=True)
        after = tuple(after for before, after in both if before.passes == pair.label.passes)
        if (kept := replace(pair, opinions=after)).known:
            stay_right.setdefault(pair.key, []).append(kept)
    return {key: _measure_judge(given, stay_right.get(key, ())) for key, given in by_judge.items()}


def _measure_judge(
    answers: Sequence[JudgedAnswer], stay_right: Sequence[JudgedAnswer]
) -> JudgeCalibration:
    criteria = sorted({answer.label.criterion for answer in answers} - {""})
    opinions = [answer.known for answer in answers]
    unstable = [len({opinion.passes for opinion in known}) > 1 for known in opinions if known[1:]]
    models = {model for known in opinions for opinion in known for model in opinion.models}
    return JudgeCalibration(
        **dict(measure(answers)),
        models=tuple(sorted(models)),
        type=answers[0].type,
        evaluators=tuple(sorted({answer.label.evaluator for answer in answers})),
        target=answers[0].target,
        unstable=round(sum(unstable) / len(unstable), _DIGITS) if unstable else None,
        length=measure(stay_right).agreement,
        criteria={
            name: measure([answer for answer in answers if answer.label.criterion == name])
            for name in criteria
        },
    )


def measure(answers: Sequence[JudgedAnswer], resamples: int = _RESAMPLES) -> Agreement:
    """What the opinions of one judge about answers show; the answers to one test are a cluster. The
    interval of kappa is based on `resamples` resamples."""
    labels = [answer.label.passes for answer in answers]
    by_test: dict[Key, list[list[int]]] = {}
    for answer in answers:
        table = by_test.setdefault(answer.label.key[:2], [[0, 0], [0, 0]])
        for opinion in answer.known:
            table[not answer.label.passes][not opinion.passes] += 1
    tables = list(by_test.values())
    sensitivity = _estimate((table[0][0], sum(table[0])) for table in tables)
    specificity = _estimate((table[1][1], sum(table[1])) for table in tables)
    total, kappa = _sum(tables), None
    interval: tuple[float, ...] = ()
    if sensitivity and specificity:
        low, high, bound = _bootstrap_kappa(tables, resamples)
        if not total[0][1] and not total[1][0]:  # where nothing differs, no resample does
            (passes, _), (_, fails) = total
            sens, spec = sensitivity.low, specificity.low
            worse = [[passes * sens, passes * (1 - sens)], [fails * (1 - spec), fails * spec]]
            bound = min(bound, round(_kappa(worse), _DIGITS))
            low = min(low, bound)
        interval = (low, high)
        kappa = Estimate(value=round(_kappa(total), _DIGITS), low=bound)
    return Agreement(
        passes=sum(labels),
        fails=len(labels) - sum(labels),
        tests=len(tables),
        agreement=_estimate((table[0][0] + table[1][1], sum(map(sum, table))) for table in tables),
        sensitivity=sensitivity,
        specificity=specificity,
        kappa=kappa,
        kappa_interval=interval,
    )


def lower_bound(clusters: Sequence[tuple[float, float]]) -> float:
    """The one-sided 95 % lower bound of a share; each cluster is (hits, number).

    Clopper and Pearson (Biometrika 1934). If clusters have several observations, with the effective
    sample size of Korn and Graubard (Survey Methodology 1998), which is the number of clusters
    if all observations are hits, or no observation is."""
    count = len(clusters)
    hits, number = (sum(column) for column in zip(*clusters, strict=True))
    share, size = hits / number, number
    if count < number:
        if count == 1 or share in (0, 1):
            size = count
        elif spread := sum((passed - share * total) ** 2 for passed, total in clusters):
            variance = count / (count - 1) * spread / number**2
            fewer = stats.t.ppf(CONFIDENCE, number - 1) / stats.t.ppf(CONFIDENCE, count - 1)
            size = min(number, share * (1 - share) / variance * fewer**2)
    two_sided = 2 * (1 - CONFIDENCE)
    return float(proportion_confint(share * size, size, two_sided, method="beta")[0])


def corrected_rate(observed: float, sensitivity: float, specificity: float) -> float | None:
    """The share of good answers, 0-1, of which a judge passes the `observed` share; None if the
    judge is no better than chance. Rogan and Gladen (Am J Epidemiology 1978)."""
    informed = sensitivity + specificity - 1
    return min(max((observed + specificity - 1) / informed, 0), 1) if informed > 0 else None


def _estimate(counts: Iterable[tuple[float, float]]) -> Estimate | None:
    clusters = [(hits, number) for hits, number in counts if number]
    if not clusters:
        return None
    hits, number = (sum(column) for column in zip(*clusters, strict=True))
    low = lower_bound(clusters)
    return Estimate(value=round(hits / number, _DIGITS), low=round(low, _DIGITS))


def _sum(tables: Iterable[Table]) -> Table:
    return [[sum(cells) for cells in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]


def _kappa(table: Table) -> float:
    """Cohen's kappa (1960); 0 if all verdicts are the same, which chance explains."""
    total = sum(map(sum, table))
    is_constant = total in (table[0][0], table[1][1])
    return 0.0 if is_constant else float(cohens_kappa(table, return_results=False))


def _bootstrap_kappa(tables: Sequence[Table], resamples: int) -> Sequence[float]:
    """The two ends of kappa's interval and its lower bound, percentiles over resamples of the
    tests; -1, 1 and -1 for one test, which shows nothing about other tests."""
    if len(tables) == 1:
        return -1.0, 1.0, -1.0
    drawn = stats.randint(0, len(tables)).rvs((resamples, len(tables)), random_state=_SEED)
    values = [_kappa(_sum(tables[number] for number in resample)) for resample in drawn]
    tail = 100 * (1 - CONFIDENCE)
    ends = stats.scoreatpercentile(values, (tail / 2, 100 - tail / 2, tail))
    return [round(float(end), _DIGITS) for end in ends]
