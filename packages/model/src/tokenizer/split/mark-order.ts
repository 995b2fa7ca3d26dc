// Unicode normalisation sorts each run of combining marks by class. V8 inserts them one by one, so a run of 100,000 marks would block for
// many seconds. Long runs are sorted here first, which changes nothing about their normal form.

/** Steps that make a text and never wait. */
export type PlainSteps = Generator<undefined, string, void>;

/** A mark of the lowest class, and one of a high class. */
const [lowest, high] = ['\u0334', '\u0301'];
const marksPerStep = 8192;

/** Marks of the same class keep their order, and nothing moves across a character without a class. */
export function* sortMarks(text: string): PlainSteps {
  if (!/[^\0-\u02ff]/.test(text)) return text;
  const [longRun, more] = [/\p{M}{256}/gu, /\p{M}{1,8192}/uy];
  let sorted = '';
  let done = 0;
  for (let match = longRun.exec(text); match; match = longRun.exec(text)) {
    more.lastIndex = longRun.lastIndex;
    let end = longRun.lastIndex;
    while (more.test(text)) {
      end = more.lastIndex;
      yield;
    }
    sorted += text.slice(done, match.index) + (yield* sortRun(text.slice(match.index, end)));
    done = end;
    longRun.lastIndex = end;
  }
  return done === 0 ? text : sorted + text.slice(done);
}

function* sortRun(run: string): PlainSteps {
  const order = new MarkOrder();
  let sorted = '';
  let count = 0;
  let byClass = new Map<string, MarkText>();
  const flush = () => {
    for (const mark of order.classes) sorted += byClass.get(mark)?.toText() ?? '';
    byClass = new Map();
  };
  for (const character of run) {
    if (++count % marksPerStep === 0) yield;
    for (const mark of order.decompose(character)) {
      const found = order.classOf(mark);
      if (found === undefined) {
        flush();
        sorted += mark;
        continue;
      }
      const text = byClass.get(found) ?? new MarkText();
      if (text.isEmpty) byClass.set(found, text);
      text.add(mark);
    }
  }
  flush();
  return sorted;
}

const maxPending = 4096;

/** A text that grows mark by mark, without a rope of hundreds of thousands of strings. */
class MarkText {
  #text = '';
  #pending: number[] = [];

  get isEmpty(): boolean {
    return this.#text === '' && this.#pending.length === 0;
  }

  add(mark: string): void {
    for (let at = 0; at < mark.length; at++) this.#pending.push(mark.charCodeAt(at));
    if (this.#pending.length < maxPending) return;
    this.#text = this.toText();
    this.#pending = [];
  }

  toText(): string {
    return this.#text + String.fromCharCode(...this.#pending);
  }
}

/** The classes of the marks of one run, each named by its first mark. How V8 orders two marks shows which class is lower. */
class MarkOrder {
  /** From the lowest to the highest. */
  readonly classes: string[] = [];
  readonly #known = new Map<string, string | undefined>();
  readonly #decomposed = new Map<string, readonly string[]>();

  decompose(character: string): readonly string[] {
    const known = this.#decomposed.get(character);
    if (known) return known;
    const marks = [...character.normalize('NFD')];
    this.#decomposed.set(character, marks);
    return marks;
  }

  /** Undefined for a character that is never moved. */
  classOf(mark: string): string | undefined {
    if (this.#known.has(mark)) return this.#known.get(mark);
    const found = isMoved(mark) ? this.#find(mark) : undefined;
    this.#known.set(mark, found);
    return found;
  }

  #find(mark: string): string {
    const at = this.classes.findIndex((one) => !isHigher(mark, one));
    const next = this.classes[at];
    if (next !== undefined && !isHigher(next, mark)) return next;
    this.classes.splice(at < 0 ? this.classes.length : at, 0, mark);
    return mark;
  }
}

function isMoved(mark: string): boolean {
  return isHigher(mark, lowest) || isHigher(high, mark);
}

function isHigher(mark: string, other: string): boolean {
  return mark !== other && (mark + other).normalize('NFD') === other + mark;
}
