// What can go wrong with a call.

/** The word for an error, which stays the same; `docs/design/protocol.md` lists them. */
export type ErrorKind =
  | 'parse'
  | 'invalidRequest'
  | 'tooLarge'
  | 'unknownMethod'
  | 'invalidParams'
  | 'error'
  | 'noStore'
  | 'locked'
  | 'unknownPoint'
  | 'ambiguousName'
  | 'notEnabled'
  | 'storeDamaged'
  | 'nothingToDo'
  | 'unknownSession'
  | 'unknownState'
  | 'conflict'
  | 'unknownAgent'
  | 'answerTooLarge'
  | 'changed'
  | 'unknownPath'
  | 'notText'
  | 'tooManyClients';

/** The server's answer to a call that it did not do. */
export class TakebackError extends Error {
  override readonly name = 'TakebackError';
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: number, message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.data = data;
  }

  /** A later server may know more kinds. */
  get kind(): ErrorKind | (string & {}) {
    return typeof this.data['kind'] === 'string' ? this.data['kind'] : 'error';
  }

  /** What to do, for people. */
  get hint(): string | undefined {
    return typeof this.data['hint'] === 'string' ? this.data['hint'] : undefined;
  }
}

/** The server is gone, or never answered. A pending call may or may not have been done. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}
