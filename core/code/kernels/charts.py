# The part of Python's kernel that tells what figures of matplotlib show, as data, in the
# form in which E2B's code interpreter tells it. It has the names of python.py.

import functools
import math
import re
import weakref

# A figure that shows more than this many points, bars and others has no chart, and an
# axis no more ticks.
MAX_ELEMENTS = 10000
MAX_TICKS = 1000

# What was drawn by Axes.bxp, by its axes: a box is drawn as lines, which do not tell.
boxes = weakref.WeakKeyDictionary()


def remember_boxes(axes_class):
    """Have axes remember the boxes with whiskers that are drawn on them."""
    draw = axes_class.bxp

    @functools.wraps(draw)
    def bxp(self, bxpstats, *args, **options):
        drawn = draw(self, bxpstats, *args, **options)
        places = args[0] if args else options.get("positions")
        across = options.get("orientation") == "horizontal" or options.get("vert") is False
        places = range(1, len(bxpstats) + 1) if places is None else places
        boxes.setdefault(self, []).extend((across, at, box) for at, box in zip(places, bxpstats))
        return drawn

    axes_class.bxp = bxp


def figure_chart(figure):
    """Return the chart of a figure, which was drawn, or None if there is none or it is too large."""
    charts = []
    elements = 0
    for axes in figure.axes:
        if not axes.has_data() or axes.get_label() == "<colorbar>":
            continue
        elements += size_of(axes)
        if elements > MAX_ELEMENTS:
            return None
        charts += axes_charts(axes)
    if len(charts) < 2:
        return charts[0] if charts else None
    title = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": title and title.get_text(), "elements": charts}


def size_of(axes):
    points = sum(len(line.get_xdata()) for line in axes.lines)
    return points + len(axes.patches) + sum(len(drawn.get_offsets()) for drawn in axes.collections)


def axes_charts(axes):
    """Return the charts that axes show, one of each kind."""
    told = [
        ("pie", {}, pie_elements(axes)),
        ("box_and_whisker", labels_of(axes), box_elements(axes)),
        ("bar", labels_of(axes), bar_elements(axes)),
        ("line", planar(axes), line_elements(axes)),
        ("scatter", planar(axes), scatter_elements(axes)),
    ]
    title = axes.get_title() or None
    charts = [{"type": kind, "title": title, **about, "elements": elements} for kind, about, elements in told if elements]
    return charts or [{"type": "unknown", "title": title, "elements": []}]


def labels_of(axes):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    return {"x_label": x, "y_label": y, "x_unit": unit_of(x), "y_unit": unit_of(y)}


def unit_of(label):
    """Return the unit that stands in brackets behind a label."""
    found = re.search(r"\s[(\[]([^()\[\]]+)[)\]]\s*$", label or "")
    return found and found.group(1)


def planar(axes):
    """Return what is told of axes with points."""
    about = labels_of(axes)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        about[name + "_scale"] = scale_of(axis)
        about[name + "_ticks"] = given(axis, axis.get_majorticklocs()[:MAX_TICKS])
        about[name + "_tick_labels"] = [label.get_text() for label in axis.get_majorticklabels()[:MAX_TICKS]]
    return about


def scale_of(axis):
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.dates import AutoDateFormatter, ConciseDateFormatter, DateFormatter, DateLocator

    formatter = axis.get_major_formatter()
    if isinstance(formatter, StrCategoryFormatter):
        return "categorical"
    if isinstance(formatter, (AutoDateFormatter, ConciseDateFormatter, DateFormatter)) or isinstance(axis.get_major_locator(), DateLocator):
        return "datetime"
    return axis.get_scale()


def given(axis, numbers):
    """Return numbers of an axis as they were given to it: dates in ISO 8601, and categories."""
    scale = scale_of(axis)
    if scale == "categorical":
        return axis.get_major_formatter().format_ticks(numbers)
    if scale == "datetime":
        from matplotlib.dates import num2date

        return [num2date(number).isoformat() for number in numbers]
    return [finite(number) for number in numbers]


def finite(number):
    number = float(number)
    return number if math.isfinite(number) else None


def name_of(artist, otherwise=""):
    """Return the label of what was drawn; one that matplotlib made begins with "_"."""
    label = str(artist.get_label())
    return otherwise if label.startswith("_") else label


def points(axes, label, x, y):
    return {"label": label, "points": list(zip(given(axes.xaxis, x), given(axes.yaxis, y)))}


def line_elements(axes):
    if axes in boxes:
        return []
    # Lines that span the axes stand elsewhere than in the data.
    lines = [line for line in axes.lines if line.get_transform() == axes.transData and line.get_label() != "_nolegend_"]
    return [points(axes, name_of(line, "Line %d" % n), line.get_xdata(False), line.get_ydata(False)) for n, line in enumerate(lines, 1)]


def scatter_elements(axes):
    import numpy
    from matplotlib.collections import PathCollection

    drawn = [(one, numpy.ma.filled(one.get_offsets(), math.nan)) for one in axes.collections if isinstance(one, PathCollection)]
    return [points(axes, name_of(one, "Dataset %d" % n), at[:, 0], at[:, 1]) for n, (one, at) in enumerate(drawn, 1)]


def pie_elements(axes):
    from matplotlib.patches import Wedge

    wedges = [one for one in axes.patches if isinstance(one, Wedge)]
    return [{"label": name_of(one), "angle": finite(abs(one.theta2 - one.theta1)), "radius": finite(one.r)} for one in wedges]


def box_elements(axes):
    return [
        {
            "label": bar_label(axes.yaxis if across else axes.xaxis, at),
            "min": finite(box["whislo"]),
            "first_quartile": finite(box["q1"]),
            "median": finite(box["med"]),
            "third_quartile": finite(box["q3"]),
            "max": finite(box["whishi"]),
            "outliers": [finite(one) for one in box.get("fliers", ())],
        }
        for across, at, box in boxes.get(axes, ())
    ]


def bar_elements(axes):
    from matplotlib.container import BarContainer

    elements = []
    for drawn in axes.containers:
        if isinstance(drawn, BarContainer):
            group = name_of(drawn)
            across = getattr(drawn, "orientation", None) == "horizontal"
            for bar in drawn.patches:
                axis, start, width, value = axes.xaxis, bar.get_x(), bar.get_width(), bar.get_height()
                if across:
                    axis, start, width, value = axes.yaxis, bar.get_y(), value, width
                elements.append({"label": bar_label(axis, start + width / 2), "group": group, "value": finite(value)})
    return elements


def bar_label(axis, at):
    """Return what an axis says below a bar or a box: the text of its tick, or else where it is."""
    from matplotlib.ticker import FixedLocator

    if isinstance(axis.get_major_locator(), FixedLocator):
        ticks = [(abs(tick - at), label.get_text()) for tick, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels())]
        distance, text = min(ticks, default=(math.inf, ""))
        if distance < 0.5 and text:
            return text
    (label,) = given(axis, [at])
    return "%g" % label if isinstance(label, float) else str(label)
