// Generated from the Rust types: `UPDATE=1 cargo test -p takeback-answers` writes it again.

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** An agent that may write while files are rewound. */
export interface ActiveSession {
  session: string;
  /** The tool of an open call whose process is alive; `null` if only its last event is recent. */
  tool: string | null;
  lastEventAt: Time;
}

/** `session archive` and `session:archive`. */
export interface ArchiveAnswer {
  session: string;
  archivedAt: Time | null;
  keptDays: number;
}

export type Author =
  | { kind: 'agent'; session: string; turn: Id; call: string; tool: string }
  | { kind: 'human' }
  | { kind: 'ambiguous'; sessions: string[] }
  | { kind: 'rewind'; id: Id }
  | { kind: 'deleted' }
  | { kind: 'import' };

/** A tool call. */
export interface Call {
  session: string;
  id: string;
  tool: string;
  /** For a shell call only. */
  command: string | null;
}

/** One change of one path. */
export interface Change {
  seq: number;
  filePath: string;
  before: Entry;
  after: Entry;
  author: Author;
  time: Time;
  correction?: Correction;
  /** For an agent's change only. */
  evidence?: Evidence;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** `state show` and `state:show`: a checkpoint with its values. */
export interface Checkpoint {
  id: string;
  execution_id: string;
  step_name: string;
  step_index: number;
  /** The first is 1. */
  attempt: number;
  branch: string;
  parent: string | null;
  timestamp: Time;
  status: CheckpointStatus;
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
  state: JsonValue;
  context: JsonValue;
  variables: JsonValue;
  metadata: JsonValue;
}

/** `checkpoint` and `checkpoint:create`: the new point. */
export interface CheckpointAnswer {
  id: Id;
  seq: number;
  label: string | null;
  changes: number;
  notCaptured: number;
  unreadable: Unreadable[];
}

/** A checkpoint without its values. */
export interface CheckpointRecord {
  id: string;
  execution_id: string;
  step_name: string;
  step_index: number;
  /** The first is 1. */
  attempt: number;
  branch: string;
  parent: string | null;
  timestamp: Time;
  status: CheckpointStatus;
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
}

export type CheckpointStatus = 'success' | 'failed' | 'pending';

/** `cleanup`, `session delete` and `session:delete`. */
export interface CleanupAnswer {
  points: number;
  sessions: string[];
  changes: number;
  freedBytes: number;
  /** Only of `cleanup`, if all stores together exceeded `maxHomeBytes`. */
  home?: HomeCleanup;
  over?: OverLimit;
}

/** How to cut an agent's conversation to the point. */
export interface Conversation {
  agent: string;
  /** The agent's own id of it. */
  session: string;
  /** The first message to drop. */
  messageId: string;
  /** Instructions for people, the best way first. */
  how: string[];
  /** Continues before that message, in a copy of the conversation; append a prompt. */
  command?: string;
}

/** What the person said about the author of a change. */
export type Correction = 'mine' | { agent: { session: string } };

/** What an agent does to the world and cannot take back. */
export interface Effect {
  key: string;
  step_index: number | null;
  intent: JsonValue;
  intended_at: Time;
  /** `null` also if that is the receipt: `received_at` says which. */
  receipt: JsonValue;
  received_at: Time | null;
}

/** What is, or was, at a path. */
export type Entry =
  | { kind: 'absent' }
  | { kind: 'file'; digest: string; size: number; mode: number }
  | { kind: 'symlink'; target: string }
  | { kind: 'dir'; mode: number }
  | { kind: 'notCaptured'; lack: NotCapturedReason }
  | { kind: 'unknown' };

/** How an agent is known to be the author, the most certain first. */
export type Evidence = 'observed' | 'named' | 'afterEdit' | 'window' | 'openWindow';

/** A run of an agent, as a series of checkpoints. */
export interface Execution {
  execution_id: string;
  /** The current one first. */
  branches: string[];
  session: string | null;
  checkpoints: number;
  /** The newest checkpoint of the current branch. */
  head: CheckpointRecord | null;
}

/** `checkpoint:list`: a file as it was when the answer to a message first named or changed it. */
export interface FileCheckpoint {
  id: Id;
  sessionId: string;
  messageId: string;
  filePath: string;
  originalContent: string | null;
  fileExisted: boolean;
  /** Milliseconds since 1970, UTC. */
  createdAt: number;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
  /** Why there is no content although the file existed. */
  notCaptured?: string;
  /** Bytes that are not UTF-8; `originalContent` is null then. */
  originalContentBase64?: string;
}

/** A copy of a file that was kept before a tool call. */
export interface FileCopy {
  id: Id;
  filePath: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** One path that differs between two points, or between a point and the disk. */
export interface FileDiff {
  filePath: string;
  before: Entry;
  after: Entry;
  /** `null`: not text. */
  insertions: number | null;
  /** `null`: not text. */
  deletions: number | null;
  /** Present, and true, if the store has lost the contents before or after. */
  damaged?: boolean;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
  /** Only of `checkpoint:diff` with `patchBytes`, for text that fits. */
  patch?: string;
}

/** Files first seen after the point, by folder: new in an ignored folder, or not covered before. A rewind keeps them. */
export interface FirstSeen {
  filePath: string;
  names: number;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** The user's repository when the point was made. */
export interface GitState {
  head: string | null;
  branch: string | null;
}

export interface HomeCleanup {
  limit: number;
  bytes: number;
  /** In stores of folders that no longer exist. */
  goneBytes: number;
  workspaces: HomeCleanupWorkspace[];
}

export interface HomeCleanupWorkspace {
  root: string;
  points: number;
  freedBytes: number;
}

/** `event:hook`. */
export interface HookAnswer {
  ok: boolean;
  error?: string;
}

/** 16 hexadecimal digits: the id of a point, a turn, a rewind or a copy of a file. */
export type Id = string;

export type NotCapturedReason = 'tooLarge' | 'deadline' | 'unreadable' | 'unstable' | 'purged' | 'special' | 'derived' | 'tooMany' | 'reserved' | 'damaged';

/** A path and a reason. */
export interface Note {
  filePath: string;
  reason: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** The store is larger than `maxStoreBytes`. */
export interface OverLimit {
  limit: number;
  bytes: number;
  /** For the files as they are now. */
  presentBytes: number;
  /** For points with a label or a pin. */
  markedBytes: number;
}

/** The least certain evidence of what an agent did at this path. */
export interface PathEvidence {
  filePath: string;
  evidence: Evidence;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** A point, with the sum of what changed between it and the next. */
export interface Point {
  id: Id;
  seq: number;
  kind: PointKind;
  session: string | null;
  messageIds: string[];
  description: string;
  label: string | null;
  pinned: boolean;
  createdAt: Time;
  filesChanged: number;
  insertions: number;
  deletions: number;
  notCaptured: number;
  hasState: boolean;
  vouchedBy: PointBasis;
  /** Paths that could not be read when the point was made; left out if there are none. */
  unreadable?: number;
}

/** `scan`: the whole tree was scanned. `watch`: only the folders that the kernel reported as changed. */
export type PointBasis = 'scan' | 'watch';

/** The notification `point:created`. */
export interface PointCreated {
  /** The root of the workspace. */
  workspace: string;
  point: Point;
}

export type PointKind = 'prompt' | 'manual' | 'step' | 'safety';

/** `checkpoint:preview`. */
export interface PreviewAnswer {
  /** Everything planned was done, with no conflict, error or missing contents. */
  success: boolean;
  rewind: Id | null;
  point: Id | null;
  /** A rewind to this point restores the files as they were before; `null` in a dry run. */
  safetyPoint: Id | null;
  restoredFiles: string[];
  deletedFiles: string[];
  mergedFiles: Note[];
  keptFiles: Note[];
  firstSeen: FirstSeen[];
  conflicts: Note[];
  ambiguous: Note[];
  notCaptured: Note[];
  evidence: PathEvidence[];
  notes: Note[];
  errors: Problem[];
  /** `point:rewind` with this mark does what this preview shows, or nothing. */
  mark: string;
  /** Agents that were working; left out if there were none. */
  atWork?: ActiveSession[];
  /** How to cut the agent's conversation to the same point, if it went on after it. */
  conversation?: Conversation;
  /** The exact bytes of restored and deleted names that are not UTF-8, as base64, by their text: one for each time it occurs in `restoredFiles`, then in `deletedFiles`. Left out if all names are UTF-8. */
  pathsBase64?: Record<string, string[]>;
  /** The agent's state that was moved together with the files. */
  state?: StateReceipt;
  /** Changes whose only evidence is that they happened while a call ran. */
  windows?: Window[];
}

/** A path and the error it failed with. */
export interface Problem {
  filePath: string;
  error: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** `rewind`, `undo`, `redo`, `state rollback` and their methods: what was done, verified on disk; in a dry run, what would be done. */
export interface Receipt {
  /** Everything planned was done, with no conflict, error or missing contents. */
  success: boolean;
  rewind: Id | null;
  point: Id | null;
  /** A rewind to this point restores the files as they were before; `null` in a dry run. */
  safetyPoint: Id | null;
  restoredFiles: string[];
  deletedFiles: string[];
  mergedFiles: Note[];
  keptFiles: Note[];
  firstSeen: FirstSeen[];
  conflicts: Note[];
  ambiguous: Note[];
  notCaptured: Note[];
  evidence: PathEvidence[];
  notes: Note[];
  errors: Problem[];
  /** Agents that were working; left out if there were none. */
  atWork?: ActiveSession[];
  /** How to cut the agent's conversation to the same point, if it went on after it. */
  conversation?: Conversation;
  /** The exact bytes of restored and deleted names that are not UTF-8, as base64, by their text: one for each time it occurs in `restoredFiles`, then in `deletedFiles`. Left out if all names are UTF-8. */
  pathsBase64?: Record<string, string[]>;
  /** The agent's state that was moved together with the files. */
  state?: StateReceipt;
  /** Changes whose only evidence is that they happened while a call ran. */
  windows?: Window[];
}

/** `record`, for each line, and `event:record`. */
export type RecordAnswer = RecordedEvent | RefusedEvent;

/** An event that is durable. */
export interface RecordedEvent {
  ok: true;
  event: string;
  seq: number;
  point: Id | null;
  notCaptured: Note[];
  /** For a `step`. */
  attempt?: number;
  /** For `before_tool`: the copy of the first path, by its id in `checkpoint:list`; `null` if none was kept. */
  checkpoint?: Id | null;
  /** For `before_tool`: every copy that was kept. */
  checkpoints?: FileCopy[];
  /** For a `step`: its checkpoint. */
  id?: string;
}

/** An event that was not recorded. */
export interface RefusedEvent {
  ok: false;
  error: string;
  /** Absent if the line is not an event. */
  event?: string;
}

/** `state resume` and `state:resume`. */
export interface ResumeAnswer {
  id: string;
  execution_id: string;
  step_name: string;
  step_index: number;
  /** The first is 1. */
  attempt: number;
  branch: string;
  parent: string | null;
  timestamp: Time;
  status: CheckpointStatus;
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
  state: JsonValue;
  context: JsonValue;
  variables: JsonValue;
  metadata: JsonValue;
  /** Intended, with no receipt: they may or may not have happened. */
  ambiguous_effects: Effect[];
  /** Effects of later steps that have a receipt. */
  happened_effects: Effect[];
}

/** `state save` and `state:save`. */
export interface SaveAnswer {
  id: string;
  execution_id: string;
  step_name: string;
  step_index: number;
  /** The first is 1. */
  attempt: number;
  branch: string;
  parent: string | null;
  timestamp: Time;
  status: CheckpointStatus;
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
  /** False if the same checkpoint was saved before. */
  is_new: boolean;
  not_captured: Note[];
}

/** `server:info`. */
export interface ServerInfo {
  name: string;
  version: string;
  /** Keys and methods may be added without a new number. */
  protocol: number;
  pid: number;
  home: string;
  workspace: string;
  /** The user's own setting. */
  allowAgentRewind: boolean;
  /** It was started with `--watch`. */
  watch: boolean;
  methods: string[];
  limits: ServerLimits;
}

export interface ServerLimits {
  messageBytes: number;
  batchCalls: number;
  unreadBytes: number;
  stallMs: number;
  clients: number;
}

/** The method `status`, which reads the store and not the files. */
export interface ServerStatus {
  root: string;
  recording: boolean;
  seq: number;
  points: number;
  sessions: number;
  openTurns: number;
  openCalls: number;
  /** The newest. */
  point: Point | null;
  /** `null` without `--watch`. */
  watch: WatchState | null;
}

/** An agent's conversation. */
export interface Session {
  id: string;
  agent: string | null;
  /** The session it was resumed or forked from. */
  parent: string | null;
  startedAt: Time;
  endedAt: Time | null;
  archivedAt: Time | null;
  atWork: boolean;
  points: number;
  /** The first prompt that is kept. */
  description: string;
}

/** `show` and `point:show`: a point, and every change between it and the next. */
export interface ShowAnswer {
  id: Id;
  seq: number;
  kind: PointKind;
  session: string | null;
  messageIds: string[];
  description: string;
  label: string | null;
  pinned: boolean;
  createdAt: Time;
  filesChanged: number;
  insertions: number;
  deletions: number;
  notCaptured: number;
  hasState: boolean;
  vouchedBy: PointBasis;
  /** The whole prompt; `null` if no prompt made the point, or it is not known. */
  prompt: string | null;
  git: GitState | null;
  changes: Change[];
  /** The calls that the authors of the changes name, once each. */
  calls: Call[];
  /** Paths that could not be read when the point was made; left out if there are none. */
  unreadable?: number;
}

/** `state delete` and `state:delete`. */
export interface StateDeleteAnswer {
  execution_id: string;
  /** `null`: the whole execution. */
  id: string | null;
  checkpoints: number;
  deleted: boolean;
}

/** `state fork` and `state:fork`. */
export interface StateForkAnswer {
  execution_id: string;
  branch: string;
  /** The checkpoint that the branch starts from. */
  from: string;
}

/** `state list` and `state:list`: the executions, newest first; of one execution, its checkpoints by step and attempt. */
export type StateListAnswer = Execution[] | CheckpointRecord[];

/** What happened to an agent's state. */
export interface StateReceipt {
  execution: string;
  branch: string;
  /** The branch's newest checkpoint afterwards. */
  checkpoint: string | null;
  /** False in a dry run, and if nothing was done. */
  moved: boolean;
  /** It was not moved because the agent has saved newer checkpoints since. */
  stays: boolean;
  error: string | null;
}

/** `point:subscribe`. */
export interface SubscribeAnswer {
  /** The root of the workspace. */
  workspace: string;
}

/** A moment in ISO 8601, UTC. */
export type Time = string;

/** A folder or file that could not be read. What is known there counts as not captured. */
export interface Unreadable {
  filePath: string;
  kind: UnreadableKind;
  /** Known names below it that could not be compared. */
  known: number;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

export type UnreadableKind = 'file' | 'folder';

/** `verify` and `checkpoint:verify`. */
export interface VerifyAnswer {
  ok: boolean;
  damage: string[];
}

/** How many folders are watched, or why the next snapshot scans everything: the other one is `null`. */
export interface WatchState {
  folders: number | null;
  why: string | null;
}

/** A call, and how many paths changed while it ran. */
export interface Window {
  session: string;
  call: string;
  tool: string;
  command: string | null;
  paths: number;
}

/** The result of every method. */
export interface Results {
  'checkpoint:cleanup': number;
  'checkpoint:create': CheckpointAnswer;
  'checkpoint:diff': FileDiff[];
  'checkpoint:list': FileCheckpoint[];
  'checkpoint:preview': PreviewAnswer;
  'checkpoint:redo': Receipt;
  'checkpoint:rewind': Receipt;
  'checkpoint:undo': Receipt;
  'checkpoint:verify': VerifyAnswer;
  'event:hook': HookAnswer;
  'event:record': RecordAnswer;
  'point:list': Point[];
  'point:rewind': Receipt;
  'point:show': ShowAnswer;
  'point:subscribe': SubscribeAnswer;
  'point:unsubscribe': boolean;
  'server:info': ServerInfo;
  'session:archive': ArchiveAnswer;
  'session:delete': CleanupAnswer;
  'session:list': Session[];
  'state:delete': StateDeleteAnswer;
  'state:fork': StateForkAnswer;
  'state:list': StateListAnswer;
  'state:resume': ResumeAnswer;
  'state:rollback': Receipt;
  'state:save': SaveAnswer;
  'state:show': Checkpoint;
  status: ServerStatus;
}

/** What the server sends unasked. */
export interface Notifications {
  'point:created': PointCreated;
}

/** The methods that this client knows. */
export const METHODS = [
  'checkpoint:cleanup',
  'checkpoint:create',
  'checkpoint:diff',
  'checkpoint:list',
  'checkpoint:preview',
  'checkpoint:redo',
  'checkpoint:rewind',
  'checkpoint:undo',
  'checkpoint:verify',
  'event:hook',
  'event:record',
  'point:list',
  'point:rewind',
  'point:show',
  'point:subscribe',
  'point:unsubscribe',
  'server:info',
  'session:archive',
  'session:delete',
  'session:list',
  'state:delete',
  'state:fork',
  'state:list',
  'state:resume',
  'state:rollback',
  'state:save',
  'state:show',
  'status',
] as const;
