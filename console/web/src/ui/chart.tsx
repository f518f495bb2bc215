/** Charts, drawn by uPlot. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { color, isDark } from "../theme.js";

/** Series is a line of a chart, in the color that a custom property of the page has. */
export interface Series {
  label: string;
  color: string;
}

/** Chart draws data, whose first column are times in seconds, and follows its width and the theme. options may say more; with bars it draws these. */
export function Chart({
  data,
  series,
  height,
  label,
  options,
  bars,
}: {
  data: uPlot.AlignedData;
  series: Series[];
  height: number;
  label: string;
  options?: Partial<uPlot.Options>;
  bars?: uPlot.Series.PathBuilder;
}): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const dark = isDark.value;
  const shape = series.map((s) => s.label).join();
  useEffect(() => {
    const place = ref.current!;
    const drawn = series.map((s) => (bars ? { ...line(s), fill: color(s.color), width: 0, paths: bars } : line(s)));
    const made = new uPlot({ ...base(), width: place.clientWidth, height, series: [{}, ...drawn], ...options }, data, place);
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height }));
    observer.observe(place);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [dark, shape, height]);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={ref} class="chart" role="img" aria-label={label} />;
}

function line({ label, color: name }: Series): uPlot.Series {
  return { label, stroke: color(name), fill: `${color(name)}22`, width: 1.5, points: { show: false }, spanGaps: false };
}

/** base is how all charts look. */
function base(): Omit<uPlot.Options, "width" | "height" | "series"> {
  const axis = {
    stroke: color("quiet"),
    grid: { stroke: color("line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  return {
    legend: { show: false },
    axes: [{ ...axis }, { ...axis, size: 56 }],
    scales: { x: { range: (_, min, max) => [Math.min(min, max - 60), max] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    padding: [8, 8, 0, 0],
  };
}

/** Spark is a chart of a few numbers without axes, for a row of a list. It is drawn once the row stays. */
export function Spark({ values, label }: { values: readonly number[]; label: string }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const data: uPlot.AlignedData = [values.map((_, i) => i), [...values]];
  const latest = useRef(data);
  latest.current = data;
  const dark = isDark.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      const options: uPlot.Options = {
        width: 96,
        height: 28,
        legend: { show: false },
        cursor: { show: false },
        padding: [2, 0, 2, 0],
        axes: [{ show: false }, { show: false }],
        select: { show: false, left: 0, top: 0, width: 0, height: 0 },
        scales: { x: { time: false, range: [0, 29] }, y: { range: (_, __, max) => [0, Math.max(max, 5)] } },
        series: [{}, line({ label, color: "accent" })],
      };
      chart.current = new uPlot(options, latest.current, ref.current!);
    }, 120);
    return () => {
      clearTimeout(timer);
      chart.current?.destroy();
      chart.current = null;
    };
  }, [dark]);
  useEffect(() => chart.current?.setData(data), [values]);
  return <div ref={ref} class="spark" role="img" aria-label={label} />;
}
