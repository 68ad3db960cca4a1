/** Lines over time, drawn by uPlot. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  name: string;
  values: (number | null)[];
  color: "accent" | "good" | "bad" | "warn";
}

const HEIGHT = 150;
const SHORTEST_S = 60;

interface ChartProps {
  title: string;
  /** Seconds since 1970, one for each value. */
  times: number[];
  lines: Line[];
  /** Whether a value stays until the next. */
  stepped?: boolean;
  /** Whether the legend says the sum of all values, where nobody points at one; else it says the last. */
  sums?: boolean;
  /** What a value says, in the legend. */
  say?: (value: number) => string;
}

export function Chart({ title, times, lines, stepped, sums, say = (value) => value.toLocaleString("en") }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [pointed, setPointed] = useState<number | null>(null);
  const data: uPlot.AlignedData = [times, ...lines.map((line) => line.values)];
  const newest = useRef(data);
  newest.current = data;
  const names = lines.map((line) => line.name).join();
  useEffect(() => {
    const element = place.current!;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element, lines, stepped ?? false, setPointed), newest.current, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      theme.disconnect();
      system.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(newest.current), [times]);
  const valueOf = ({ values }: Line) => {
    if (pointed !== null) return values[pointed] ?? null;
    return (sums ? values.reduce<number>((total, value) => total + (value ?? 0), 0) : values.findLast((value) => value !== null)) ?? null;
  };
  const said = lines.map((line) => ({ ...line, said: valueOf(line) === null ? "–" : say(valueOf(line)!) }));
  return (
    <figure>
      <figcaption>
        <span>{title}</span>
        {said.map((line) => <span class={`key ${line.color}`}>{line.name} <b>{line.said}</b></span>)}
        {pointed !== null && times[pointed] !== undefined && <span class="quiet">at {clock(times[pointed]!, true)}</span>}
      </figcaption>
      <div ref={place} class="chart" role="img" aria-label={`${title}: ${said.map((line) => `${line.name} ${line.said}`).join(", ")}`} />
    </figure>
  );
}

function clock(time: number, seconds: boolean): string {
  return new Date(time * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
}

function options(element: HTMLElement, lines: Line[], stepped: boolean, point: (place: number | null) => void): uPlot.Options {
  // A canvas knows no variables nor schemes: an element works the colour out.
  const color = (name: string) => {
    element.style.color = `var(--${name})`;
    return getComputedStyle(element).color;
  };
  const faint = (name: string) => color(name).replace("rgb(", "rgba(").replace(")", ", 0.12)");
  const axis: uPlot.Axis = { font: "12px sans-serif", stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false } };
  const paths = stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {};
  const labels: uPlot.Axis = { ...axis, size: 24, space: 70, values: (_, splits, __, ___, step) => splits.map((split) => clock(split, step < 60)) };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    legend: { show: false },
    scales: {
      // A first value alone is no reason to show years.
      x: { range: (_, first, last) => [Math.min(first ?? 0, (last ?? 0) - SHORTEST_S), last ?? SHORTEST_S] },
      y: { range: (_, __, most) => [0, Math.max(1, (most ?? 0) * 1.1)] },
    },
    axes: [labels, { ...axis, size: 55 }],
    series: [{}, ...lines.map((line) => ({ label: line.name, stroke: color(line.color), fill: faint(line.color), width: 2, points: { show: (drawn: uPlot) => drawn.data[0].length < 3, size: 5 }, ...paths }))],
    hooks: { setCursor: [(drawn) => point(drawn.cursor.idx ?? null)] },
  };
}
