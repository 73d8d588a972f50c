// A connected client: every method with its types, and events.

import { EventEmitter } from 'node:events';

import { Connection, type Streams } from './connection.js';
import type { AgentEvent } from './inputs.js';
import type { Method, Params, Result } from './methods.js';
import type {
  CheckpointRecord,
  Execution,
  FileCheckpoint,
  PointCreated,
  Receipt,
  RecordAnswer,
} from './types.js';

export interface ClientEvents {
  /** A process made a point; after `point.subscribe`. */
  'point:created': [PointCreated];
  /** There will be no more answers. Reconnecting is up to the caller. */
  close: [Error | undefined];
}

type Options<M extends Method, Given extends string = never> = Omit<Params<M>, Given>;

export class Client extends EventEmitter<ClientEvents> {
  readonly #connection: Connection;
  readonly #workspace: string | undefined;
  readonly #closed: Promise<void>;

  constructor(streams: Streams, workspace?: string) {
    super();
    this.#workspace = workspace;
    let over = (): void => {};
    this.#closed = new Promise((resolve) => (over = resolve));
    this.#connection = new Connection(streams, {
      notified: (method, params) => {
        if (method === 'point:created') this.emit(method, params as PointCreated);
      },
      closed: (why) => {
        this.emit('close', why);
        over();
      },
    });
  }

  /** Any method, by its name. */
  call<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
    // The only method without a workspace.
    if (method === 'server:info') return this.#connection.call(method, params) as Promise<Result<M>>;
    // An undefined `workspace` must not hide the client's own.
    const given = Object.entries(params).filter(([, value]) => value !== undefined);
    const own = this.#workspace === undefined ? {} : { workspace: this.#workspace };
    const all = { ...own, ...Object.fromEntries(given) };
    return this.#connection.call(method, all) as Promise<Result<M>>;
  }

  /** Waits for the answers to pending calls, then closes the connection. */
  close(): Promise<void> {
    this.#connection.end();
    return this.#closed;
  }

  readonly checkpoint = {
    list: (
      sessionId: string,
      options: Options<'checkpoint:list', 'sessionId'> = {},
    ): Promise<FileCheckpoint[]> => this.call('checkpoint:list', { ...options, sessionId }),
    rewind: (sessionId: string, messageId: string): Promise<Receipt> =>
      this.call('checkpoint:rewind', { sessionId, messageId }),
    cleanup: (options: Options<'checkpoint:cleanup'> = {}): Promise<number> =>
      this.call('checkpoint:cleanup', options),
    create: (options: Options<'checkpoint:create'> = {}) => this.call('checkpoint:create', options),
    preview: (point: string, options: Options<'checkpoint:preview', 'point'> = {}) =>
      this.call('checkpoint:preview', { ...options, point }),
    diff: (options: Options<'checkpoint:diff'> = {}) => this.call('checkpoint:diff', options),
    /** Takes back one turn, one call or a range, and keeps what came later. */
    revert: (what: string, options: Options<'checkpoint:revert', 'what'> = {}) =>
      this.call('checkpoint:revert', { ...options, what }),
    /** Brings paths back as they were, whoever changed them since. */
    restore: (paths: string[], options: Options<'checkpoint:restore', 'paths'> = {}) =>
      this.call('checkpoint:restore', { ...options, paths }),
    /** Merges what happened in a fork. */
    adopt: (folder: string, options: Options<'checkpoint:adopt', 'folder'> = {}) =>
      this.call('checkpoint:adopt', { ...options, folder }),
    /** The conflicts that the last operation left. */
    conflicts: (options: Options<'checkpoint:conflicts'> = {}) =>
      this.call('checkpoint:conflicts', options),
    /** Settles them. */
    resolve: (options: Options<'checkpoint:resolve'> = {}) =>
      this.call('checkpoint:resolve', options),
    undo: (options: Options<'checkpoint:undo'> = {}) => this.call('checkpoint:undo', options),
    redo: (options: Options<'checkpoint:redo'> = {}) => this.call('checkpoint:redo', options),
    verify: (options: Options<'checkpoint:verify'> = {}) => this.call('checkpoint:verify', options),
    /** Copies the workspace as it was at a point into a new folder. */
    fork: (
      point: string,
      folder: string,
      options: Options<'checkpoint:fork', 'point' | 'folder'> = {},
    ) => this.call('checkpoint:fork', { ...options, point, folder }),
    /** What happened in forks since they were made. */
    compare: (folders: string[], options: Options<'checkpoint:compare', 'folders'> = {}) =>
      this.call('checkpoint:compare', { ...options, folders }),
  };

  /** Questions about files over time. */
  readonly history = {
    /** Which change each line of a file came from. */
    blame: (path: string, options: Options<'history:blame', 'path'> = {}) =>
      this.call('history:blame', { ...options, path }),
    /** The change that wrote a line: `PATH:LINE`. */
    why: (line: string, options: Options<'history:why', 'line'> = {}) =>
      this.call('history:why', { ...options, line }),
    /** The points that changed a file. */
    path: (path: string, options: Options<'history:path', 'path'> = {}) =>
      this.call('history:path', { ...options, path }),
    /** A file as it was: `POINT:PATH`. */
    cat: (file: string, options: Options<'history:cat', 'file'> = {}) =>
      this.call('history:cat', { ...options, file }),
    /** Lines and files by author. */
    stats: (options: Options<'history:stats'> = {}) => this.call('history:stats', options),
    /** Runs a command on copies, to find the change after which it fails. */
    bisect: (command: string[], options: Options<'history:bisect', 'command'> = {}) =>
      this.call('history:bisect', { ...options, command }),
  };

  readonly point = {
    list: (options: Options<'point:list'> = {}) => this.call('point:list', options),
    show: (point = '@', options: Options<'point:show', 'point'> = {}) =>
      this.call('point:show', { ...options, point }),
    rewind: (point: string, options: Options<'point:rewind', 'point'> = {}) =>
      this.call('point:rewind', { ...options, point }),
    subscribe: (options: Options<'point:subscribe'> = {}) => this.call('point:subscribe', options),
    unsubscribe: (options: Options<'point:unsubscribe'> = {}) =>
      this.call('point:unsubscribe', options),
  };

  readonly session = {
    list: (options: Options<'session:list'> = {}) => this.call('session:list', options),
    archive: (sessionId: string) => this.call('session:archive', { sessionId }),
    delete: (sessionId: string) => this.call('session:delete', { sessionId }),
  };

  readonly state = {
    save: (
      checkpoint: Params<'state:save'>['checkpoint'],
      options: Options<'state:save', 'checkpoint'> = {},
    ) => this.call('state:save', { ...options, checkpoint }),
    /** The executions, newest first. */
    executions: (options: { limit?: number; workspace?: string } = {}): Promise<Execution[]> =>
      this.call('state:list', options) as Promise<Execution[]>,
    /** The checkpoints of one, in the order of its steps. */
    list: (
      executionId: string,
      options: Options<'state:list', 'executionId'> = {},
    ): Promise<CheckpointRecord[]> =>
      this.call('state:list', { ...options, executionId }) as Promise<CheckpointRecord[]>,
    show: (id: string) => this.call('state:show', { id }),
    resume: (id: string, options: Options<'state:resume', 'id'> = {}) =>
      this.call('state:resume', { ...options, id }),
    rollback: (id: string, options: Options<'state:rollback', 'id'> = {}) =>
      this.call('state:rollback', { ...options, id }),
    fork: (id: string, branch?: string) =>
      this.call('state:fork', branch === undefined ? { id } : { id, branch }),
    delete: (id: string, options: Options<'state:delete', 'id'> = {}) =>
      this.call('state:delete', { ...options, id }),
  };

  readonly event = {
    /** The event is durable once it is answered. */
    record: (event: AgentEvent): Promise<RecordAnswer> => this.call('event:record', event),
    /** A hook payload in the agent's own format. */
    hook: (
      agent: string,
      payload: Params<'event:hook'>['payload'],
      options: Options<'event:hook', 'agent' | 'payload'> = {},
    ) => this.call('event:hook', { ...options, agent, payload }),
  };

  readonly server = {
    info: () => this.call('server:info', {}),
  };

  status(options: Options<'status'> = {}) {
    return this.call('status', options);
  }
}
