"""The pictures of `regressions.py`: false blocks, power, and what confirmation costs. They read on
light pages and on dark ones. `python benchmarks/regressions_plots.py` draws them into
`docs/images`; it needs `pip install '.[bench]'`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from regressions import ALPHA, TESTS, Measured, Scenario, all_measured, read_options

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

#: A grey that is read on white and on black, and three colours that can be distinguished by those who see
#: few.
GREY, OURS, THIN, OTHER = "#7d8590", "#2f81f7", "#3fb950", "#d97706"
RATES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
AFTER = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
HISTORIES = (20, 5, 1)
STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.titlecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "text.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GREY,
    "grid.alpha": 0.2,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "legend.frameon": False,
    "savefig.transparent": True,
    "svg.hashsalt": "regressions",
}


def draw(folder: Path, count: int, seed: int) -> None:
    """Writes the three pictures, each point from so many pull requests."""
    steady = [
        Scenario("nothing changed", (rate,) * TESTS, history)
        for history in (20, 1)
        for rate in RATES
    ]
    worse = [
        Scenario("one worse", (0.95,) * TESTS, history, after)
        for history in HISTORIES
        for after in AFTER
    ]
    measured = all_measured([*steady, *worse], count, seed)
    with mpl.rc_context(STYLE):
        draw_false_blocks(
            folder / "false-blocks.svg",
            measured[: len(RATES)],
            measured[len(RATES) : 2 * len(RATES)],
        )
        draw_extra(
            folder / "extra-samples.svg",
            measured[: len(RATES)],
            measured[len(RATES) : 2 * len(RATES)],
        )
        draw_power(folder / "power.svg", measured[len(steady) :])


@contextmanager
def picture(path: Path, width: float, panels: int = 1) -> Iterator[Sequence[Any]]:
    figure, axes = plt.subplots(
        1, panels, figsize=(width, 3.2), sharey=True, squeeze=False, layout="constrained"
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    yield axes[0]
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    print(path)


def line(
    axis: Any,
    across: Sequence[float],
    points: Sequence[Measured],
    of: Callable[[Measured], float],
    **look: Any,
) -> None:
    axis.plot(across, [of(point) for point in points], marker="o", clip_on=False, **look)


def draw_false_blocks(path: Path, stored: Sequence[Measured], rerun: Sequence[Measured]) -> None:
    with picture(path, 6.4) as (axis,):
        line(
            axis,
            RATES,
            stored,
            lambda measured: measured.plain / measured.count,
            color=OTHER,
            label="one run a side",
        )
        line(
            axis,
            RATES,
            stored,
            lambda measured: measured.blocked / measured.count,
            color=OURS,
            label="confirmed, 20 samples of base stored",
        )
        line(
            axis,
            RATES,
            rerun,
            lambda measured: measured.blocked / measured.count,
            color=THIN,
            label="confirmed, base run again",
        )
        axis.axhline(ALPHA, color=GREY, linestyle=":", linewidth=1)
        axis.annotate(
            "5 %", (RATES[0], ALPHA), xytext=(0, 3), textcoords="offset points", va="bottom"
        )
        axis.set(
            xlabel=f"true pass rate of each of {TESTS} tests",
            title="Unchanged pull requests that are blocked",
            ylim=(0, 1),
        )
        as_shares(axis)
        axis.legend(loc="center left", bbox_to_anchor=(0.0, 0.5))


def draw_extra(path: Path, stored: Sequence[Measured], rerun: Sequence[Measured]) -> None:
    with picture(path, 6.4) as (axis,):
        line(
            axis,
            RATES,
            stored,
            lambda measured: measured.extra_head,
            color=OURS,
            label="of head, 20 samples of base stored",
        )
        line(
            axis,
            RATES,
            rerun,
            lambda measured: measured.extra_head,
            color=THIN,
            label="of head, base run again",
        )
        line(
            axis,
            RATES,
            rerun,
            lambda measured: measured.extra_base,
            color=OTHER,
            label="of base, base run again",
        )
        axis.set(
            xlabel=f"true pass rate of each of {TESTS} tests",
            title="Samples beside one run of the suite",
        )
        axis.set_ylim(bottom=0)
        as_shares(axis)
        axis.legend(loc="upper right")


def draw_power(path: Path, measured: Sequence[Measured]) -> None:
    with picture(path, 9.6, len(HISTORIES)) as axes:
        for place, (axis, history) in enumerate(zip(axes, HISTORIES, strict=True)):
            points = measured[place * len(AFTER) : (place + 1) * len(AFTER)]
            line(
                axis,
                AFTER,
                points,
                lambda measured: measured.found / measured.count,
                color=OURS,
                label="confirmed",
            )
            line(
                axis,
                AFTER,
                points,
                lambda measured: measured.fisher_found / measured.count,
                color=OTHER,
                linestyle="--",
                label="Fisher and Holm",
            )
            title = "base run again" if history == 1 else f"{history} samples of base stored"
            axis.set(xlabel="its pass rate on head", title=title, ylim=(0, 1), xlim=(1, 0))
            as_shares(axis)
        axes[0].set_ylabel("found")
        axes[0].legend(loc="upper left")
        axes[0].figure.suptitle(f"One of {TESTS} tests got worse, from 0.95", fontsize=10)


def as_shares(axis: Any) -> None:
    axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))


if __name__ == "__main__":
    given = read_options(__doc__, 500)
    images = Path(__file__).resolve().parents[1] / "docs" / "images"
    draw(images, given.pull_requests, given.seed)
