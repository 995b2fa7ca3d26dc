// A chart of lines over time or over policy versions.

import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly label: string;
  readonly x: readonly number[];
  readonly lines: readonly Line[];
  readonly isTime?: boolean;
  readonly height?: number;
  readonly from?: number;
  readonly to?: number;
  readonly points?: boolean;
  readonly xLabel?: string;
  /** Dashed lines at these places of the x axis. */
  readonly marks?: readonly number[];
}

const lineColours = ['--line-0', '--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--line-6', '--line-7'];

export function Chart(props: ChartProps) {
  const { label, x, lines, isTime = true, height = 150, points = false } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const names = lines.map((line) => line.label).join('\n');
  const data = [x as number[], ...lines.map(({ values }) => values as (number | null)[])] as UPlot.AlignedData;
  const newest = useRef(data);
  newest.current = data;
  const marks = useRef(props.marks);
  marks.current = props.marks;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new chart only for other lines or another theme
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new UPlot(
        { ...toOptions(element, props), hooks: { draw: [(drawn) => drawMarks(drawn, marks.current ?? [])] } },
        newest.current,
        element,
      );
    };
    draw();
    const size = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    size.observe(element);
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      size.disconnect();
      theme.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names, isTime, height, points]);
  useEffect(() => plot.current?.setData(newest.current));
  const last = lines.map((line) => `${line.label}: ${line.values.findLast((value) => value !== null) ?? 'none'}`).join(', ');
  return <div className="chart" ref={place} role="img" aria-label={`${label}. Last values: ${last}`} />;
}

function drawMarks({ ctx, bbox, valToPos }: UPlot, marks: readonly number[]): void {
  ctx.save();
  ctx.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--faint');
  ctx.setLineDash([3, 5]);
  for (const mark of marks) {
    const x = Math.round(valToPos(mark, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Of the reader's clock. */
function showTimes(_plot: UPlot, times: readonly number[]): string[] {
  return times.map((at) => new Date(at * 1000).toTimeString().slice(0, 8));
}

/** A chart that has just begun is a minute wide too. */
const leastSeconds = 60;

/** From the data: for a single point, the chart would suggest a whole day. */
function toTimeRange({ data: [times] }: UPlot): [number, number] {
  const end = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? end, end - leastSeconds), end];
}

function toOptions(element: HTMLElement, { lines, isTime = true, height = 150, from, to, points, xLabel }: ChartProps): UPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: read('--faint'), grid: { stroke: read('--rule'), width: 1 }, ticks: { show: false }, font: '11px sans-serif' };
  return {
    width: Math.max(120, element.clientWidth),
    height,
    legend: { show: lines.length > 1 },
    cursor: { points: { size: 6 }, drag: { setScale: false } },
    scales: {
      x: { time: isTime, ...(isTime ? { range: toTimeRange } : {}) },
      y: { range: (_plot, low, high) => [from ?? Math.min(0, low ?? 0), to ?? ((high ?? 0) > 0 ? (high ?? 1) * 1.05 : 1)] },
    },
    series: [
      { label: isTime ? 'time' : (xLabel ?? 'version') },
      ...lines.map((line, index) => ({
        label: line.label,
        stroke: read(lineColours[index % lineColours.length] ?? '--line-0'),
        width: 1.75,
        spanGaps: true,
        points: { show: points === true, size: 5 },
        ...(lines.length === 1 ? { fill: read('--line-fill') } : {}),
      })),
    ],
    axes: [
      { ...axis, ...(isTime ? { values: showTimes } : { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }), size: 24 },
      { ...axis, size: 46 },
    ],
  };
}
