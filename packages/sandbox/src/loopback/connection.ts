// One connection of a program in a sandbox to a service of the worker, as a Node stream: an HTTP server takes it as it takes a socket. At
// most a window of bytes is on the way in each direction, so a side that does not read stops the other one.

import { Duplex } from 'node:stream';
import { type ConnectionMethod, connectionWindowBytes } from '@millrace/protocol';

export interface ConnectionWire {
  /** Sends a message that has no reply. */
  send(method: ConnectionMethod, params: { readonly connection: number; readonly bytes?: number }, body?: Buffer): void;
}

export class LoopbackConnection extends Duplex {
  readonly #wire: ConnectionWire;
  readonly #number: number;
  /** The connection is open at the executor: it has not reported its end. */
  #isOpen = true;
  #hasEnded = false;
  #hasSentEnd = false;
  /** Received, and not yet acknowledged: the reader has not taken it. */
  #untaken = 0;
  #pushed = 0;
  /** Sent, and not yet acknowledged. */
  #inFlight = 0;
  #waiting: Buffer = Buffer.alloc(0);
  #written: (() => void) | undefined;
  #finish: (() => void) | undefined;

  constructor(wire: ConnectionWire, number: number) {
    super({ allowHalfOpen: true });
    this.#wire = wire;
    this.#number = number;
    this.on('error', () => {}); // an owner that does not listen must not end the process
  }

  /** Bytes of the program. Throws if they exceed the window. */
  receive(data: Buffer): void {
    if (this.#hasEnded) throw new Error(`data of connection ${this.#number} after its end`);
    this.#untaken += data.length;
    if (this.#untaken > connectionWindowBytes) throw new Error(`connection ${this.#number} sent more than its window`);
    if (this.destroyed) return;
    this.#pushed += data.length;
    if (this.push(data)) this._read();
  }

  receiveEnd(): void {
    if (this.#hasEnded) throw new Error(`connection ${this.#number} ended twice`);
    this.#hasEnded = true;
    if (!this.destroyed) this.push(null);
  }

  /** The program has taken this many bytes. Throws if fewer were sent. */
  receiveAck(bytes: number): void {
    if (bytes > this.#inFlight) throw new Error(`connection ${this.#number} acknowledged bytes that were not sent`);
    this.#inFlight -= bytes;
    this.#sendWaiting();
  }

  /** The executor has closed it. After the end of both sides, the owner may still read what has arrived. */
  receiveClose(error: Error): void {
    this.#isOpen = false;
    if (!this.#hasEnded || !this.#hasSentEnd) this.destroy(error);
  }

  override _read(): void {
    if (this.#pushed === 0 || !this.#isOpen) return;
    this.#untaken -= this.#pushed;
    this.#wire.send('connection.ack', { connection: this.#number, bytes: this.#pushed });
    this.#pushed = 0;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: () => void): void {
    this.#waiting = chunk;
    this.#written = written;
    this.#sendWaiting();
  }

  /** The stream has finished when the program's side of the connection has everything. */
  override _final(finish: () => void): void {
    this.#finish = finish;
    this.#sendWaiting();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#isOpen) this.#wire.send('connection.close', { connection: this.#number });
    done(error);
  }

  #sendWaiting(): void {
    if (this.destroyed || !this.#isOpen) return;
    const piece = this.#waiting.subarray(0, connectionWindowBytes - this.#inFlight);
    if (piece.length > 0) {
      this.#inFlight += piece.length;
      this.#waiting = this.#waiting.subarray(piece.length);
      this.#wire.send('connection.write', { connection: this.#number }, piece);
    }
    const written = this.#written;
    if (written && this.#waiting.length === 0) {
      this.#written = undefined;
      written();
    }
    const finish = this.#finish;
    if (finish === undefined || this.#inFlight > 0 || this.#waiting.length > 0) return;
    this.#finish = undefined;
    this.#hasSentEnd = true;
    this.#wire.send('connection.end', { connection: this.#number });
    finish();
  }
}
