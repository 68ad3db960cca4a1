/** Lines over time, drawn by uPlot. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  name: string;
  values: (number | null)[];
  color: "accent" | "good" | "bad" | "warn";
}

const HEIGHT = 170;

/** Times are seconds since 1970, one for each value. */
export function Chart({ title, times, lines, stepped }: { title: string; times: number[]; lines: Line[]; stepped?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data: uPlot.AlignedData = [times, ...lines.map((line) => line.values)];
  const names = lines.map((line) => line.name).join();
  useEffect(() => {
    const element = place.current!;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element, lines, stepped ?? false), data, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      resized.disconnect();
      theme.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(data), [times]);
  const last = lines.map((line) => `${line.name} ${line.values.findLast((value) => value !== null) ?? 0}`).join(", ");
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div ref={place} class="chart" role="img" aria-label={`${title}: ${last}`} />
    </figure>
  );
}

function options(element: HTMLElement, lines: Line[], stepped: boolean): uPlot.Options {
  // A canvas knows no variables nor schemes: an element works the colour out.
  const color = (name: string) => {
    element.style.color = `var(--${name})`;
    return getComputedStyle(element).color;
  };
  const axis: uPlot.Axis = { font: "12px sans-serif", stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 } };
  const paths = stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {};
  return {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    legend: { live: true },
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [axis, { ...axis, size: 55 }],
    series: [{}, ...lines.map((line) => ({ label: line.name, stroke: color(line.color), width: 2, points: { show: false }, ...paths }))],
  };
}
