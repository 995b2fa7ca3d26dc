// A long list of which only the visible lines exist. All lines are equally high.

import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';

interface VirtualRowsProps {
  readonly count: number;
  readonly rowHeight: number;
  readonly label: string;
  readonly selected: number;
  readonly onSelect: (index: number) => void;
  readonly onOpen: (index: number) => void;
  /** Called with the lines that are visible now. */
  readonly onWindow: (first: number, last: number) => void;
  readonly render: (index: number) => ReactNode;
}

const extraRows = 12;

export function VirtualRows(props: VirtualRowsProps) {
  const { count, rowHeight, label, selected, onSelect, onOpen, onWindow, render } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const size = new ResizeObserver(() => setHeight(element.clientHeight));
    size.observe(element);
    return () => size.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / rowHeight) - extraRows);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + extraRows);
  useEffect(() => onWindow(first, last), [onWindow, first, last]);
  useEffect(() => {
    const element = box.current;
    if (element === null || selected < 0) return;
    const [above, below] = [selected * rowHeight, (selected + 1) * rowHeight];
    if (above < element.scrollTop) element.scrollTop = above;
    else if (below > element.scrollTop + element.clientHeight) element.scrollTop = below - element.clientHeight;
  }, [selected, rowHeight]);
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: page,
      PageUp: -page,
      End: count,
      Home: -count,
    };
    const step = steps[event.key];
    if (event.key === 'Enter' && selected >= 0) onOpen(selected);
    else if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    else onSelect(Math.min(count - 1, Math.max(0, selected + step)));
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      className="rows"
      role="listbox"
      aria-label={label}
      aria-activedescendant={selected >= 0 ? `row-${selected}` : undefined}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div style={{ height: count * rowHeight, position: 'relative' }} role="presentation">
        {Array.from({ length: Math.max(0, last - first) }, (_, offset) => {
          const index = first + offset;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
            <div
              key={index}
              id={`row-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === selected}
              aria-posinset={index + 1}
              aria-setsize={count}
              className={`row ${index === selected ? 'row-selected' : ''}`}
              style={{ position: 'absolute', top: index * rowHeight, height: rowHeight, left: 0, right: 0 }}
              onClick={() => {
                onSelect(index);
                onOpen(index);
              }}
            >
              {render(index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
