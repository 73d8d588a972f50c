// JSON-RPC 2.0 over two streams, one message per line. Knows no methods.

import type { Readable, Writable } from 'node:stream';

import { ConnectionLost, TakebackError } from './errors.js';

interface PendingCall {
  resolve(result: unknown): void;
  reject(why: Error): void;
}

/** Any message of a server. */
interface Message {
  id?: number | string | null;
  result?: unknown;
  error?: { code: number; message: string; data?: Record<string, unknown> };
  method?: string;
  params?: unknown;
}

export interface Streams {
  /** From the server. */
  from: Readable;
  /** To the server. */
  to: Writable;
}

/** Receives notifications, and once the end of the connection. */
export interface Listener {
  notified(method: string, params: unknown): void;
  closed(why: Error | undefined): void;
}

export class Connection {
  readonly #to: Writable;
  readonly #listener: Listener;
  readonly #waiting = new Map<number, PendingCall>();
  #next = 1;
  #line: Buffer[] = [];
  #over = false;
  #lost: Error | undefined;

  constructor(streams: Streams, listener: Listener) {
    this.#to = streams.to;
    this.#listener = listener;
    streams.from.on('data', (chunk: Buffer) => this.#read(chunk));
    streams.from.on('end', () => this.#end(undefined));
    for (const stream of new Set([streams.from, streams.to])) {
      stream.on('error', (error: Error) => this.#end(error));
      stream.on('close', () => this.#end(undefined));
    }
  }

  call(method: string, params: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over) {
        reject(this.#gone());
        return;
      }
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject });
      this.#to.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  /** Accepts no more calls; pending ones are still answered. */
  end(): void {
    this.#to.end();
  }

  #read(chunk: Buffer): void {
    let rest = chunk;
    for (let at = rest.indexOf(0x0a); at >= 0; at = rest.indexOf(0x0a)) {
      // A line is decoded as a whole: a chunk may end inside a character.
      this.#onLine(Buffer.concat([...this.#line, rest.subarray(0, at)]).toString('utf8'));
      this.#line = [];
      rest = rest.subarray(at + 1);
    }
    if (rest.length > 0) this.#line.push(rest);
  }

  #onLine(line: string): void {
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch (error) {
      this.#to.destroy();
      this.#end(new Error(`the server sent invalid JSON: ${String(error)}`));
      return;
    }
    if (typeof message.method === 'string') {
      // A listener that throws must not lose the messages after this one.
      const { method, params } = message;
      queueMicrotask(() => this.#listener.notified(method, params));
      return;
    }
    const fault = message.error
      ? new TakebackError(message.error.code, message.error.message, message.error.data)
      : undefined;
    const waiting = typeof message.id === 'number' ? this.#waiting.get(message.id) : undefined;
    if (waiting === undefined) {
      // A call that was too long to have an id; or there is one client too many, and this is the end.
      if (fault?.kind === 'tooLarge') this.#refuseOldest(fault);
      else this.#lost = fault;
      return;
    }
    this.#waiting.delete(message.id as number);
    if (fault) waiting.reject(fault);
    else waiting.resolve(message.result);
  }

  /** Calls are answered in order, so it is the oldest that was meant. */
  #refuseOldest(fault: TakebackError): void {
    const oldest = this.#waiting.entries().next();
    if (oldest.done) return;
    const [id, waiting] = oldest.value;
    this.#waiting.delete(id);
    waiting.reject(fault);
  }

  #end(why: Error | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#lost = why ?? this.#lost;
    for (const waiting of this.#waiting.values()) waiting.reject(this.#gone());
    this.#waiting.clear();
    this.#listener.closed(this.#lost);
  }

  #gone(): Error {
    if (this.#lost instanceof TakebackError) return this.#lost;
    return new ConnectionLost('the connection to takeback is closed', { cause: this.#lost });
  }
}
