// All connections of one sandbox to services of its worker. What the executor reports is not trusted: an event that no executor sends
// throws, and the sandbox then ends.

import type { Duplex } from 'node:stream';
import { connectionEvent, type RolloutError } from '@millrace/protocol';
import { type ConnectionWire, LoopbackConnection } from './connection.ts';

interface ConnectionHandler {
  readonly maxConnections: number;
  onConnection(connection: Duplex): void;
}

interface OpenListener extends ConnectionHandler {
  readonly numbers: Set<number>;
}

export class LoopbackConnections {
  readonly #wire: ConnectionWire;
  readonly #listeners = new Map<number, OpenListener>();
  readonly #open = new Map<number, { readonly connection: LoopbackConnection; readonly listener: OpenListener }>();
  #nextListener = 1;

  constructor(wire: ConnectionWire) {
    this.#wire = wire;
  }

  /** Returns the listener's number. It is known before the executor listens, because a program may connect at once. */
  addListener(handler: ConnectionHandler): number {
    const number = this.#nextListener++;
    this.#listeners.set(number, { ...handler, numbers: new Set() });
    return number;
  }

  /** Call it when the executor has closed the listener, and with it its connections. */
  removeListener(number: number): void {
    this.#listeners.delete(number);
  }

  take(head: unknown, body: Buffer): void {
    const event = connectionEvent.parse(head);
    if (event.event === 'open') {
      this.#takeOpen(event.connection, event.listener);
      return;
    }
    const found = this.#open.get(event.connection);
    if (found === undefined) throw new Error(`the connection ${event.connection} is not open`);
    const { connection, listener } = found;
    if (event.event === 'data') connection.receive(body);
    else if (event.event === 'ack') connection.receiveAck(event.bytes);
    else if (event.event === 'end') connection.receiveEnd();
    else {
      this.#open.delete(event.connection);
      listener.numbers.delete(event.connection);
      connection.receiveClose(resetError());
    }
  }

  /** Ends every connection with the error. */
  close(error: RolloutError): void {
    for (const { connection } of this.#open.values()) connection.receiveClose(error);
    this.#open.clear();
    this.#listeners.clear();
  }

  #takeOpen(number: number, listenerNumber: number): void {
    const listener = this.#listeners.get(listenerNumber);
    if (listener === undefined) throw new Error(`a connection to listener ${listenerNumber}, which is not open`);
    if (this.#open.has(number)) throw new Error(`the connection ${number} is already open`);
    if (listener.numbers.size >= listener.maxConnections) throw new Error(`more than ${listener.maxConnections} connections at once`);
    const connection = new LoopbackConnection(this.#wire, number);
    this.#open.set(number, { connection, listener });
    listener.numbers.add(number);
    try {
      listener.onConnection(connection);
    } catch (error) {
      connection.destroy(error instanceof Error ? error : new Error(String(error))); // the sandbox is not to blame
    }
  }
}

/** As a socket reports it. */
function resetError(): Error {
  return Object.assign(new Error('the connection of a program in the sandbox was reset'), { code: 'ECONNRESET' });
}
