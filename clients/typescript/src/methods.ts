// The parameters of every method; the results are generated.

import type { AgentEvent, FileChoices, NewStateCheckpoint } from './inputs.js';
import type { JsonValue, Results } from './types.js';

/** The workspace; without it, the client's own, or the folder that the server was started in. */
interface In {
  workspace?: string;
}

/** How to rewind. */
interface RewindOptions extends In {
  dryRun?: boolean;
  /** Also files outside the workspace that the agent edited. */
  outside?: boolean;
  /** Overwrite these paths even though their current contents could not be saved. */
  discard?: string[];
}

/** What to take back. */
interface RewindTarget {
  /** `@`, `@~2`, an id or a prefix of it, a label, a message id, `SESSION:MESSAGE`, a time. */
  point: string;
  paths?: string[];
  /** Everything since then, including what people changed. */
  exact?: boolean;
  sessions?: string[];
  allAgents?: boolean;
  ambiguous?: 'leave' | 'take';
  /** Files with unclear changes: take the changes back as if the agent had made them. */
  take?: string[];
  /** Files with unclear changes: keep the changes as your own. */
  mine?: string[];
  conflicts?: ConflictPolicy;
}

/** What becomes of lines that were changed again since: they stay (`keep`), their whole file stays
 * (`file`), they are taken back too (`take`), or both versions are written (`markers`). */
type ConflictPolicy = 'keep' | 'file' | 'take' | 'markers';

/** The same call with the `mark` of a preview (`dryRun`) does exactly what that showed, or nothing. */
interface ActionOptions extends RewindOptions {
  mark?: string;
}

/** Which points to list. The filters can be combined. */
interface PointFilter {
  limit?: number;
  session?: string;
  /** Also the points that Takeback makes itself. */
  all?: boolean;
  /** Points after which one of these paths, or something below it, changed; or globs. */
  paths?: string[];
  /** Rewinds and other operations instead of points. */
  ops?: boolean;
  /** Points after which `you`, `agent`, an agent's name or a session changed something. */
  by?: string;
  /** `10m`, `2h`, `14:00`, `2026-11-19` */
  since?: string;
  until?: string;
  /** Points with this text in the prompt or label. */
  grep?: string;
  /** Points after which a file got or lost this text. */
  text?: string;
  /** Points after which this tool changed something. */
  tool?: string;
}

/** The parameters of every method. */
export interface MethodParams {
  'checkpoint:list': { sessionId: string; contents?: boolean } & In;
  'checkpoint:rewind': { sessionId: string; messageId: string; conflicts?: ConflictPolicy } & In;
  'checkpoint:cleanup': { trustClock?: boolean } & In;
  'checkpoint:create': { label?: string } & In;
  'checkpoint:preview': RewindTarget & In;
  'checkpoint:diff': {
    /** A point, or `POINT!` for what its turn changed. */
    from?: string;
    to?: string;
    paths?: string[];
    patchBytes?: number;
    /** Only the changes of `you`, `agent`, an agent's name, or a session. */
    by?: string;
  } & In;
  'checkpoint:revert': {
    /** A turn by its point, a call (`POINT.N` or its id), or a range (`A..B`). */
    what: string;
    paths?: string[];
    sessions?: string[];
    allAgents?: boolean;
    ambiguous?: 'leave' | 'take';
    conflicts?: ConflictPolicy;
  } & ActionOptions;
  'checkpoint:restore': {
    paths: string[];
    /** The point; without it, the newest. */
    from?: string;
  } & ActionOptions;
  'checkpoint:adopt': {
    /** A fork of this workspace. */
    folder: string;
    paths?: string[];
    conflicts?: ConflictPolicy;
  } & ActionOptions;
  'checkpoint:conflicts': In;
  /** Either `take`, for all conflicts in `paths`, or `choices`. */
  'checkpoint:resolve': {
    paths?: string[];
    take?: 'mine' | 'before';
    choices?: FileChoices[];
  } & ActionOptions;
  'checkpoint:undo': {
    exact?: boolean;
    /** The id of the operation to take back; without it, the last one. */
    operation?: string;
    conflicts?: ConflictPolicy;
  } & RewindOptions;
  'checkpoint:redo': { exact?: boolean } & RewindOptions;
  'checkpoint:verify': In;
  'history:blame': {
    path: string;
    /** Only these lines: `12` or `10-20`. */
    lines?: string;
  } & In;
  'history:why': {
    /** `PATH:LINE` */
    line: string;
  } & In;
  'checkpoint:fork': {
    /** Any name of a point, or `now`. */
    point: string;
    /** A new or empty folder outside the workspace. */
    folder: string;
    /** Makes FOLDER-1 to FOLDER-N. */
    count?: number;
    /** Also what is not recorded, as it is now. */
    all?: boolean;
  } & In;
  'checkpoint:compare': { folders: string[] } & In;
  'history:path': { path: string; limit?: number } & In;
  'history:cat': {
    /** `POINT:PATH` */
    file: string;
    /** Only these lines of a text file: `12` or `10-20`. */
    lines?: string;
    /** Contents that end early have `cut`. */
    maxBytes?: number;
  } & In;
  'history:stats': {
    /** `A..B` */
    range?: string;
    since?: string;
  } & In;
  'history:bisect': {
    /** The program and its arguments. It runs in a copy of the workspace. */
    command: string[];
    good?: string;
    bad?: string;
    /** Copied from the workspace first, for what is not recorded: `node_modules`. */
    with?: string[];
  } & In;
  'point:list': PointFilter & In;
  'point:show': { point?: string } & In;
  /** With the `mark` of a preview: do exactly what it showed, or nothing. */
  'point:rewind': RewindTarget & RewindOptions & { mark?: string };
  'point:subscribe': { all?: boolean } & In;
  'point:unsubscribe': In;
  'session:list': { limit?: number } & In;
  'session:archive': { sessionId: string } & In;
  'session:delete': { sessionId: string } & In;
  'state:save': { checkpoint: NewStateCheckpoint; session?: string; files?: boolean } & In;
  'state:list': {
    executionId?: string;
    branch?: string;
    all?: boolean;
    after?: string;
    limit?: number;
  } & In;
  'state:show': { id: string } & In;
  'state:resume': {
    id: string;
    branch?: string;
    fromStep?: number;
    maxRetries?: number;
    lastMessages?: number;
  } & In;
  'state:rollback': {
    id: string;
    exact?: boolean;
    partial?: boolean;
    stateOnly?: boolean;
    /** Default: take back what only the execution's own sessions can have changed. */
    ambiguous?: 'leave' | 'take';
  } & RewindOptions;
  'state:fork': { id: string; branch?: string } & In;
  'state:delete': { id: string; dryRun?: boolean } & In;
  'event:record': AgentEvent & In;
  'event:hook': { agent: string; payload: JsonValue; event?: string; pid?: number } & In;
  'server:info': Record<string, never>;
  status: In;
}

export type Method = keyof Results;
export type Params<M extends Method> = MethodParams[M];
export type Result<M extends Method> = Results[M];
