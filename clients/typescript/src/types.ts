// What stands in calls and answers. `docs/schema.json` has the same, and is tested against the program.

/** What stood at a path when the answer to a message first named or changed it. */
export interface FileCheckpoint {
  id: string;
  sessionId: string;
  messageId: string;
  filePath: string;
  originalContent: string | null;
  fileExisted: boolean;
  /** Milliseconds since 1970, UTC. */
  createdAt: number;
  /** Bytes that are not UTF-8; `originalContent` is null then. */
  originalContentBase64?: string;
  /** Bytes of a path that is not UTF-8. */
  filePathBase64?: string;
  /** Why there is no content, although there was something. */
  notCaptured?: string;
}

/** What a rewind did, checked against the disk; in a dry run, what it would do. */
export interface RewindResult {
  /** All that was planned was done, with no conflict, error or missing bytes. */
  success: boolean;
  restoredFiles: string[];
  deletedFiles: string[];
  errors: Array<{ filePath: string; error: string }>;
  rewind: string | null;
  point: string | null;
  /** Goes back to before this rewind. */
  safetyPoint: string | null;
  mergedFiles: Note[];
  keptFiles: Note[];
  /** Files first seen after the point, by folder: new in an ignored folder, or not covered before. They stay. */
  firstSeen: Array<{ filePath: string; filePathBase64?: string; names: number }>;
  /** How each path that an agent changed is known to be its work: the least certain of it. */
  evidence: PathEvidence[];
  conflicts: Note[];
  ambiguous: Note[];
  notCaptured: Note[];
  notes: Note[];
  /** Changes that merely happened while a call ran. */
  windows: Window[];
  /** An agent's state that went along. */
  state?: StateReceipt;
}

/** A path and why. */
export interface Note {
  filePath: string;
  filePathBase64?: string;
  reason: string;
}

export interface Window {
  session: string;
  call: string;
  tool: string;
  command: string | null;
  paths: number;
}

export interface StateReceipt {
  execution: string;
  branch: string;
  checkpoint: string | null;
  moved: boolean;
  stays: boolean;
  error: string | null;
}

export type PointKind = 'prompt' | 'manual' | 'step' | 'safety';

export interface Point {
  id: string;
  seq: number;
  kind: PointKind;
  session: string | null;
  messageIds: string[];
  description: string;
  label: string | null;
  pinned: boolean;
  /** ISO 8601, UTC. */
  createdAt: string;
  filesChanged: number;
  insertions: number;
  deletions: number;
  notCaptured: number;
  hasState: boolean;
  /** `scan`: the files were looked at. `watch`: those were of which the kernel had told the server. */
  vouchedBy: 'scan' | 'watch';
}

/** What stands, or stood, at a path. */
export type Entry =
  | { kind: 'absent' }
  | { kind: 'file'; digest: string; size: number; mode: number }
  | { kind: 'symlink'; target: string }
  | { kind: 'dir'; mode: number }
  | { kind: 'notCaptured'; lack: string }
  | { kind: 'unknown' };

export type Author =
  | { kind: 'agent'; session: string; turn: string; call: string; tool: string }
  | { kind: 'human' }
  | { kind: 'ambiguous'; sessions: string[] }
  | { kind: 'rewind'; id: string }
  | { kind: 'deleted' }
  | { kind: 'import' };

export interface Change {
  seq: number;
  filePath: string;
  filePathBase64?: string;
  before: Entry;
  after: Entry;
  author: Author;
  /** Of an agent's change. */
  evidence?: Evidence;
  /** What the person said of its author. */
  correction?: 'mine' | { agent: { session: string } };
  time: string;
}

export interface ShownPoint extends Point {
  git: { head: string | null; branch: string | null } | null;
  changes: Change[];
}

export interface FileDiff {
  filePath: string;
  filePathBase64?: string;
  before: Entry;
  after: Entry;
  /** null: not text. */
  insertions: number | null;
  deletions: number | null;
  /** Asked for, text, and not too long. */
  patch?: string;
}

export interface MadePoint {
  id: string;
  seq: number;
  label: string | null;
  changes: number;
  notCaptured: number;
}

export interface Session {
  id: string;
  agent: string | null;
  parent: string | null;
  startedAt: string;
  endedAt: string | null;
  archivedAt: string | null;
  atWork: boolean;
  points: number;
  description: string;
}

export interface CleanedUp {
  points: number;
  sessions: string[];
  changes: number;
  freedBytes: number;
}

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** A step of an agent, as it hands it over. */
export interface NewStateCheckpoint {
  execution_id: string;
  step_name: string;
  step_index: number;
  state: JsonValue;
  context: JsonValue;
  variables?: JsonValue;
  status?: 'success' | 'failed' | 'pending';
  error?: string | null;
  metadata?: JsonValue;
  timestamp?: string;
  id?: string;
  parent?: string | null;
  /** `newest`: `parent` must be the newest checkpoint, and without one there must be none yet. */
  expect?: 'newest' | 'anything';
  branch?: string;
  attempt?: number;
  session?: string;
}

/** A checkpoint without its values. */
export interface StateRecord {
  id: string;
  execution_id: string;
  step_name: string;
  step_index: number;
  attempt: number;
  branch: string;
  parent: string | null;
  timestamp: string;
  status: 'success' | 'failed' | 'pending';
  error: string | null;
  point: string | null;
}

export interface SavedState extends StateRecord {
  is_new: boolean;
  not_captured: Note[];
}

export interface StateCheckpoint extends StateRecord {
  state: JsonValue;
  context: JsonValue;
  variables: JsonValue;
  metadata: JsonValue;
}

export interface Effect {
  key: string;
  step_index: number | null;
  intent: JsonValue;
  intended_at: string;
  receipt: JsonValue;
  received_at: string | null;
}

export interface ResumedState extends StateCheckpoint {
  ambiguous_effects: Effect[];
  happened_effects: Effect[];
}

export interface Execution {
  execution_id: string;
  branches: string[];
  session: string | null;
  checkpoints: number;
  head: StateRecord | null;
}

/** What an agent tells, as a line of `takeback record`. */
export type AgentEvent =
  | {
      event: 'session_start';
      session: string;
      agent?: string;
      parent?: string;
      /** The agent's process: its death ends the session. */
      pid?: number;
    }
  | { event: 'prompt'; session: string; message?: string; text: string }
  | {
      event: 'before_tool';
      session: string;
      call: string;
      tool: string;
      paths?: string[];
      shell?: string | boolean;
    }
  | {
      event: 'after_tool';
      session: string;
      call: string;
      ok?: boolean;
      background?: boolean;
      tool?: string;
    }
  | { event: 'turn_end'; session: string }
  | { event: 'session_end'; session: string }
  | { event: 'step'; session: string; checkpoint: NewStateCheckpoint };

export type Recorded =
  | {
      ok: true;
      event: string;
      seq: number;
      point: string | null;
      notCaptured: Note[];
      /** Of `before_tool`: the copy of the first path, as `checkpoint:list` has it, or null if none was kept. */
      checkpoint?: string | null;
      /** Of `before_tool`: every copy that was kept. */
      checkpoints?: { id: string; filePath: string; filePathBase64?: string }[];
      /** Of a step. */
      id?: string;
      attempt?: number;
    }
  | { ok: false; event?: string; error: string };

export interface ServerInfo {
  name: string;
  version: string;
  protocol: number;
  pid: number;
  home: string;
  workspace: string;
  /** The user's own setting. */
  allowAgentRewind: boolean;
  /** It was started with `--watch`. */
  watch: boolean;
  methods: string[];
  limits: {
    messageBytes: number;
    batchCalls: number;
    unreadBytes: number;
    stallMs: number;
    clients: number;
  };
}

export interface Status {
  root: string;
  recording: boolean;
  seq: number;
  points: number;
  sessions: number;
  openTurns: number;
  openCalls: number;
  point: Point | null;
  /** How many folders are watched, or why the next snapshot looks at everything; `null` without `--watch`. */
  watch: { folders: number; why: null } | { folders: null; why: string } | null;
}

/** Somebody made a point. */
export interface PointCreated {
  /** The root of the workspace. */
  workspace: string;
  point: Point;
}

/** How an agent is known to be the author, the most certain first. */
export type Evidence = 'observed' | 'named' | 'afterEdit' | 'window' | 'openWindow';

export interface PathEvidence {
  filePath: string;
  /** The exact bytes, where the path is not UTF-8. */
  filePathBase64?: string;
  evidence: Evidence;
}
