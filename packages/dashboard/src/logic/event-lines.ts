// Server-sent events from a stream of text: whole messages, however the stream was cut.

interface ServerMessage {
  readonly id?: string;
  readonly data: string;
}

/** Returns a function that takes the next piece, and gives the messages that it completes. */
export function openEventLines(): (piece: string) => ServerMessage[] {
  let rest = '';
  return (piece) => {
    const parts = (rest + piece).split('\n\n');
    rest = parts.pop() ?? '';
    return parts.flatMap((part) => {
      const lines = part.split('\n');
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      const id = lines
        .find((line) => line.startsWith('id:'))
        ?.slice(3)
        .trim();
      return data.length === 0 ? [] : [{ data: data.join('\n'), ...(id === undefined ? {} : { id }) }];
    });
  };
}
