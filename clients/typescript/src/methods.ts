// Every method with what goes in and comes out.

import type {
  AgentEvent,
  CleanedUp,
  Execution,
  FileCheckpoint,
  FileDiff,
  JsonValue,
  MadePoint,
  NewStateCheckpoint,
  Point,
  Recorded,
  ResumedState,
  RewindResult,
  SavedState,
  ServerInfo,
  Session,
  ShownPoint,
  StateCheckpoint,
  StateRecord,
  Status,
} from './types.js';

/** Where; without it, the client's workspace, or where the server was started. */
interface In {
  workspace?: string;
}

/** How a rewind is done. */
interface Doing extends In {
  dryRun?: boolean;
  /** Also files outside of the workspace that the agent edited. */
  outside?: boolean;
  /** Give up what stands at these paths, although it could not be kept. */
  discard?: string[];
}

/** What a rewind takes back. */
interface Which {
  /** `@`, `@~2`, an id or its beginning, a label, a message id, `SESSION:MESSAGE`, a time. */
  point: string;
  paths?: string[];
  /** Everything since, also what people did. */
  exact?: boolean;
  sessions?: string[];
  allAgents?: boolean;
  ambiguous?: 'leave' | 'take';
}

interface Of<P, R> {
  params: P;
  result: R;
}

export interface Methods {
  'checkpoint:list': Of<{ sessionId: string; contents?: boolean } & In, FileCheckpoint[]>;
  'checkpoint:rewind': Of<{ sessionId: string; messageId: string } & In, RewindResult>;
  'checkpoint:cleanup': Of<{ trustClock?: boolean } & In, number>;
  'checkpoint:create': Of<{ label?: string } & In, MadePoint>;
  'checkpoint:preview': Of<Which & In, RewindResult & { mark: string }>;
  'checkpoint:diff': Of<
    { from?: string; to?: string; paths?: string[]; patchBytes?: number } & In,
    FileDiff[]
  >;
  'checkpoint:undo': Of<{ exact?: boolean } & Doing, RewindResult>;
  'checkpoint:redo': Of<{ exact?: boolean } & Doing, RewindResult>;
  'checkpoint:verify': Of<In, { ok: boolean; damage: string[] }>;
  'point:list': Of<{ limit?: number; session?: string; all?: boolean } & In, Point[]>;
  'point:show': Of<{ point?: string } & In, ShownPoint>;
  /** With the `mark` of a preview: only what that showed. */
  'point:rewind': Of<Which & Doing & { mark?: string }, RewindResult>;
  'point:subscribe': Of<{ all?: boolean } & In, { workspace: string }>;
  'point:unsubscribe': Of<In, boolean>;
  'session:list': Of<{ limit?: number } & In, Session[]>;
  'session:archive': Of<
    { sessionId: string } & In,
    { session: string; archivedAt: string | null; keptDays: number }
  >;
  'session:delete': Of<{ sessionId: string } & In, CleanedUp>;
  'state:save': Of<
    { checkpoint: NewStateCheckpoint; session?: string; files?: boolean } & In,
    SavedState
  >;
  'state:list': Of<
    {
      executionId?: string;
      branch?: string;
      all?: boolean;
      after?: string;
      limit?: number;
    } & In,
    Execution[] | StateRecord[]
  >;
  'state:show': Of<{ id: string } & In, StateCheckpoint>;
  'state:resume': Of<
    {
      id: string;
      branch?: string;
      fromStep?: number;
      maxRetries?: number;
      lastMessages?: number;
    } & In,
    ResumedState
  >;
  'state:rollback': Of<
    {
      id: string;
      exact?: boolean;
      partial?: boolean;
      stateOnly?: boolean;
      /** Without it, what only the execution's own sessions may have changed is taken back. */
      ambiguous?: 'leave' | 'take';
    } & Doing,
    RewindResult
  >;
  'state:fork': Of<
    { id: string; branch?: string } & In,
    { execution_id: string; branch: string; from: string }
  >;
  'state:delete': Of<
    { id: string; dryRun?: boolean } & In,
    { execution_id: string; id: string | null; checkpoints: number; deleted: boolean }
  >;
  'event:record': Of<AgentEvent & In, Recorded>;
  'event:hook': Of<
    { agent: string; payload: JsonValue; event?: string; pid?: number } & In,
    { ok: true } | { ok: false; error: string }
  >;
  'server:info': Of<Record<string, never>, ServerInfo>;
  status: Of<In, Status>;
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M]['params'];
export type Result<M extends Method> = Methods[M]['result'];

// An object, so that the compiler misses none.
const ALL: { readonly [M in Method]: true } = {
  'checkpoint:list': true,
  'checkpoint:rewind': true,
  'checkpoint:cleanup': true,
  'checkpoint:create': true,
  'checkpoint:preview': true,
  'checkpoint:diff': true,
  'checkpoint:undo': true,
  'checkpoint:redo': true,
  'checkpoint:verify': true,
  'point:list': true,
  'point:show': true,
  'point:rewind': true,
  'point:subscribe': true,
  'point:unsubscribe': true,
  'session:list': true,
  'session:archive': true,
  'session:delete': true,
  'state:save': true,
  'state:list': true,
  'state:show': true,
  'state:resume': true,
  'state:rollback': true,
  'state:fork': true,
  'state:delete': true,
  'event:record': true,
  'event:hook': true,
  'server:info': true,
  status: true,
};

/** The methods that this client knows. */
export const METHODS = Object.keys(ALL) as readonly Method[];
