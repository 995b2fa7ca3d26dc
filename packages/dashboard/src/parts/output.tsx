// Text of agents and of their tools. It is only ever drawn as text: what looks like HTML is shown as it was written.

import { useMemo, useState } from 'react';
import { parseAnsi } from '../logic/ansi.ts';
import { toHarmless } from '../logic/harmless.ts';
import { isPatch, parsePatch } from '../logic/patch.ts';

/** Longer texts are opened on demand. */
const shownCharacters = 12_000;

/** Output of a program: colours of the terminal, or a patch as a diff. */
export function Output({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, shownCharacters);
  return (
    <>
      {isPatch(shown) ? <Patch text={shown} /> : <Ansi text={shown} />}
      {shown.length === text.length ? null : (
        <button type="button" className="more" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      )}
    </>
  );
}

function Ansi({ text }: { readonly text: string }) {
  const { spans, isFlood } = useMemo(() => parseAnsi(text), [text]);
  return (
    <pre className="output">
      {spans.map((span, index) =>
        span.style === '' ? (
          span.text
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: spans never move
          <span key={index} className={span.style}>
            {span.text}
          </span>
        ),
      )}
      {isFlood ? <span className="faint">{'\n'}(colours change too often: the rest is shown without)</span> : null}
    </pre>
  );
}

function Patch({ text }: { readonly text: string }) {
  const lines = useMemo(() => parsePatch(text), [text]);
  return (
    <div className="patch">
      <table>
        <tbody>
          {lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines never move
            <tr key={index} className={`patch-${line.kind}`}>
              <td className="patch-number">{line.before}</td>
              <td className="patch-number">{line.after}</td>
              <td className="patch-mark">{line.kind === 'add' ? '+' : line.kind === 'remove' ? '−' : ''}</td>
              <td className="patch-text">{toHarmless(line.text)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What a person or a model wrote. */
export function Prose({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, shownCharacters);
  return (
    <>
      <div className="prose">{toHarmless(shown)}</div>
      {shown.length === text.length ? null : (
        <button type="button" className="more" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      )}
    </>
  );
}
