// Shortens what a tool returns to what a model can read: the head and the tail stay, and a line between them says what was left out.

/** How many characters of one result the model reads at most. */
export const maxResult = 32 * 1024;

/** Cuts between lines where a line ends near the cut. `advice` says how to see the rest. */
export function cutText(
  text: string,
  { most = maxResult, advice = '' }: { readonly most?: number; readonly advice?: string } = {},
): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  const head = text.slice(0, headEnd(text, half));
  const tail = text.slice(tailStart(text, text.length - half));
  const left = text.length - head.length - tail.length;
  return `${head}\n[... ${left} characters left out${advice === '' ? '' : `: ${advice}`} ...]\n${tail}`;
}

/** A line may move the cut by this many characters. */
const slack = 1024;

function headEnd(text: string, at: number): number {
  const line = text.lastIndexOf('\n', at);
  if (line >= 0 && line > at - slack) return line;
  return isHighSurrogate(text, at - 1) ? at - 1 : at;
}

function tailStart(text: string, at: number): number {
  const line = text.indexOf('\n', at);
  if (line >= 0 && line < at + slack) return line + 1;
  return isHighSurrogate(text, at - 1) ? at + 1 : at;
}

function isHighSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code < 0xdc00;
}
