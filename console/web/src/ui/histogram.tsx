/** The counts of logs by time, stacked by severity. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { number } from "../format.js";
import { severities, type Counts } from "../logs.js";
import { t } from "../texts.js";
import { Chart } from "./chart.js";

/** Histogram draws counts. narrow is called with the times, in seconds, between which the user has dragged. */
export function Histogram({ counts, narrow }: { counts: Counts; narrow: (from: number, to: number) => void }): JSX.Element {
  const names = [...severities, ""].filter((name) => counts.by.has(name));
  // The series are drawn one over the other, the highest first: each is the sum of those that follow.
  const data = useMemo(
    () =>
      [
        counts.times,
        ...names.map((_, i) => counts.times.map((_, at) => names.slice(i).reduce((sum, name) => sum + counts.by.get(name)![at]!, 0))),
      ] as uPlot.AlignedData,
    [counts],
  );
  if (!counts.total) return <p class="quiet">{t.logs.histogramEmpty}</p>;
  const select = (chart: uPlot) => {
    const { left, width } = chart.select;
    if (width > 4) narrow(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
  };
  const bars = uPlot.paths.bars!({ size: [0.9, 40], align: 1 });
  const end = counts.times.at(-1)! + counts.seconds;
  const options = (): Partial<uPlot.Options> => ({
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    hooks: { setSelect: [select] },
    scales: { x: { range: [counts.times[0]!, end] }, y: { range: (_, __, max) => [0, max * 1.05 || 1] } },
  });
  const key = (name: string) => `severity-${(name || "none").toLowerCase()}`;
  return (
    <figure class="histogram">
      <Chart
        key={`${counts.times[0]}-${end}-${names.join()}`}
        data={data}
        height={130}
        label={t.logs.histogram(number(counts.total))}
        options={options()}
        bars={bars}
        series={names.map((name) => ({ label: name || t.logs.unset, color: key(name) }))}
      />
      <figcaption>
        {t.logs.histogram(number(counts.total))}
        {names.map((name) => (
          <span key={name} class={`key key-${key(name)}`}>
            {name || t.logs.unset} {number(counts.by.get(name)!.reduce((a, b) => a + b, 0))}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
