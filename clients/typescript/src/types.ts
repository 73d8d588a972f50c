// Generated from the Rust types: `UPDATE=1 cargo test -p takeback-answers` writes it again.

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** `checkpoint:revert`, `checkpoint:restore`, `checkpoint:resolve`, `checkpoint:adopt`. */
export interface ActionAnswer {
  /** Everything planned was done, with no conflict, error or missing contents. */
  success: boolean;
  /** The id of the operation; `null` in a dry run, and if nothing was done. */
  rewind: Id | null;
  /** The point that was restored; `null` for an undo or redo. */
  point: Id | null;
  /** A rewind to this point restores the files as they were before; `null` in a dry run. */
  safetyPoint: Id | null;
  /** Files that were written. */
  restoredFiles: string[];
  /** Files that were deleted. */
  deletedFiles: string[];
  /** Files from which only the agent's part was taken out. */
  mergedFiles: Note[];
  /** Files left as they are because they are not the agent's. */
  keptFiles: Note[];
  /** Files first seen since the point; they are kept. */
  firstSeen: FirstSighting[];
  /** Files with changes that cannot be taken back without destroying another author's work. These changes stay; a file that is also in `mergedFiles` or `restoredFiles` keeps only some lines. */
  conflicts: Conflict[];
  /** Files whose author is unclear; they are kept. */
  ambiguous: Note[];
  /** Files whose earlier contents were not captured. */
  notCaptured: Note[];
  /** How the authors of the taken back changes are known. */
  evidence: PathEvidence[];
  /** Remarks about single files. */
  notes: Note[];
  /** Files that could not be written. */
  errors: Problem[];
  /** Agents that were working; left out if there were none. */
  atWork?: ActiveSession[];
  /** How to cut the agent's conversation to the same point, if it went on after it. */
  conversation?: Conversation;
  /** Whose changes it covers; left out where that is the operation's. */
  covers?: Coverage;
  /** Git, if HEAD has moved since the restored state. Takeback does not move it. */
  git?: GitFollowUp;
  /** Commands that make folders again which are not recorded, or bring them in line. */
  hints?: InstallHint[];
  /** With `dryRun`: the same call with this mark does what this preview shows, or nothing. */
  mark?: string;
  /** The exact bytes of restored and deleted names that are not UTF-8, as base64, by their text: one for each time it occurs in `restoredFiles`, then in `deletedFiles`. Left out if all names are UTF-8. */
  pathsBase64?: Record<string, string[]>;
  /** The agent's state that was moved together with the files. */
  state?: StateReceipt;
  /** Changes whose only evidence is that they happened while a call ran. */
  windows?: Window[];
}

/** An agent that may write while files are rewound. */
export interface ActiveSession {
  /** The session. */
  session: string;
  /** The tool of an open call whose process is alive; `null` if only its last event is recent. */
  tool: string | null;
  /** When its last event was recorded. */
  lastEventAt: Time;
}

/** `session archive` and `session:archive`. */
export interface ArchiveAnswer {
  /** The session. */
  session: string;
  /** When it was archived. */
  archivedAt: Time | null;
  /** How many days its data is kept. */
  keptDays: number;
}

/** Who made a change. */
export type Author =
  | { kind: 'agent'; session: string; turn: Id; call: string; tool: string }
  | { kind: 'human' }
  | { kind: 'ambiguous'; sessions: string[] }
  | { kind: 'rewind'; id: Id }
  | { kind: 'deleted' }
  | { kind: 'import' };

/** `bisect` and `history:bisect`: what made a command fail. */
export interface BisectAnswer {
  /** The point of the prompt; `null`: the step belongs to no prompt. */
  turn: Id | null;
  /** The tool call; `null`: the step is no tool call. */
  call: string | null;
  /** The beginning of the prompt. */
  prompt: string | null;
  /** Who made the step. */
  author: Author;
  /** How an agent is known to be its author, or possibly its author. */
  evidence: Evidence | null;
  /** The command, of a shell call. */
  command: string | null;
  /** The last point at which the command was good. */
  good: Id | null;
  /** The paths that the step changed. */
  files: FilePath[];
  /** How many steps it may be; more than one only where steps between were skipped. */
  candidates: number;
  /** How often the command ran. */
  runs: number;
  /** How often it could not be tested. */
  skipped: number;
}

/** `history:blame`: the lines of a file, and what the command prints on standard error. */
export interface BlameReport {
  /** The lines, in order. */
  lines: BlamedLine[];
  /** What could not be asked about; lines may lack an author because of it. */
  problems: string[];
}

/** A line, and who wrote it. */
export interface BlamedLine {
  /** Its number, from 1. */
  line: number;
  /** The line without its end. */
  text: string;
  /** Who. `other`: a commit's author, or a person named by another tool. `before`: older than the log. */
  author: LineAuthor;
  /** How an agent is known to be the author, or possibly the author. */
  evidence: Evidence | null;
  /** What names the author; `null`: nothing does. */
  source: LineSource | null;
  /** The session. */
  session: string | null;
  /** The agent. */
  agent: string | null;
  /** The model, where the agent said it. */
  model: string | null;
  /** The point of the prompt. */
  point: Id | null;
  /** The tool call. */
  call: string | null;
  /** The tool. */
  tool: string | null;
  /** The beginning of the prompt. */
  prompt: string | null;
  /** When it was written. */
  at: Time | null;
  /** The commit that it came from, where git says so. */
  commit: string | null;
  /** The name of an author who is not you. */
  name: string | null;
  /** The exact bytes, where the line is not UTF-8 and `text` is lossy. */
  textBase64?: string;
}

/** Who changed how much between a point and the next. */
export interface ByAuthor {
  /** The session of the point, with its subagents; of a point made by hand: any agent. */
  agent: ChangeCount;
  /** You. */
  you: ChangeCount;
  /** Other sessions. */
  others: ChangeCount;
  /** An agent or you: the evidence does not tell. */
  unclear: ChangeCount;
}

/** A tool call. */
export interface Call {
  /** Its session. */
  session: string;
  /** Its id within the session. */
  id: string;
  /** Its tool. */
  tool: string;
  /** For a shell call only. */
  command: string | null;
  /** Its number in the point's turn; `null`: it belongs to another turn. */
  number: number | null;
  /** How many paths it changed after the point. */
  files: number;
}

/** `cat` and `history:cat`: a file at a point. */
export interface CatAnswer {
  /** Bytes of the whole file. */
  size: number;
  /** The contents; `null`: they are not UTF-8. */
  text: string | null;
  /** The contents, if they are not UTF-8. */
  base64: string | null;
  /** Whether the contents end early, because only so many bytes were wanted; left out if not. */
  cut?: boolean;
}

/** One change of one path. */
export interface Change {
  /** Its position in the log. */
  seq: number;
  /** The path, with `/` between names. */
  filePath: string;
  /** The entry before. */
  before: Entry;
  /** The entry after. */
  after: Entry;
  /** Who made it. */
  author: Author;
  /** When it was recorded. */
  time: Time;
  /** What the user said about its author, if anything. */
  correction?: Correction;
  /** For an agent's change only. */
  evidence?: Evidence;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** How much was changed. */
export interface ChangeCount {
  /** Files. */
  files: number;
  /** Lines added. */
  insertions: number;
  /** Lines removed. */
  deletions: number;
}

/** `state show` and `state:show`: a checkpoint with its values. */
export interface Checkpoint {
  /** Its id. */
  id: string;
  /** Its execution. */
  execution_id: string;
  /** The name of the step. */
  step_name: string;
  /** The number of the step. */
  step_index: number;
  /** The first is 1. */
  attempt: number;
  /** Its branch. */
  branch: string;
  /** The checkpoint before it on the branch. */
  parent: string | null;
  /** When it was made. */
  timestamp: Time;
  /** How the step ended. */
  status: CheckpointStatus;
  /** Why the step failed. */
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
  /** The agent's state. */
  state: JsonValue;
  /** The agent's context. */
  context: JsonValue;
  /** The agent's variables. */
  variables: JsonValue;
  /** The agent's metadata. */
  metadata: JsonValue;
}

/** `checkpoint` and `checkpoint:create`: the new point. */
export interface CheckpointAnswer {
  /** The point's id. */
  id: Id;
  /** Its position in the log. */
  seq: number;
  /** Its label. */
  label: string | null;
  /** How many changes were recorded with it. */
  changes: number;
  /** How many paths were not captured. */
  notCaptured: number;
  /** What could not be read. */
  unreadable: Unreadable[];
}

/** A checkpoint without its values. */
export interface CheckpointRecord {
  /** Its id. */
  id: string;
  /** Its execution. */
  execution_id: string;
  /** The name of the step. */
  step_name: string;
  /** The number of the step. */
  step_index: number;
  /** The first is 1. */
  attempt: number;
  /** Its branch. */
  branch: string;
  /** The checkpoint before it on the branch. */
  parent: string | null;
  /** When it was made. */
  timestamp: Time;
  /** How the step ended. */
  status: CheckpointStatus;
  /** Why the step failed. */
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
}

/** How a step ended. */
export type CheckpointStatus = 'success' | 'failed' | 'pending';

/** `cleanup`, `session delete` and `session:delete`. */
export interface CleanupAnswer {
  /** How many points were deleted. */
  points: number;
  /** The deleted sessions. */
  sessions: string[];
  /** How many changes were removed from the log. */
  changes: number;
  /** The disk space that was reclaimed. */
  freedBytes: number;
  /** Only of `cleanup`, if all stores together exceeded `maxHomeBytes`. */
  home?: HomeCleanup;
  /** By how much the store still exceeds its limit, if it does. */
  over?: OverLimit;
}

/** How a command ended. */
export interface CommandResult {
  /** `null`: a signal ended it. */
  exitCode: number | null;
  /** How long it ran. */
  milliseconds: number;
  /** The last line that it printed. */
  lastLine: string | null;
}

/** `compare` and `checkpoint:compare`. */
export interface CompareAnswer {
  /** One for each folder, in the order of the arguments. */
  forks: ComparedFork[];
  /** Files that several of them changed. */
  shared: SharedFile[];
}

/** What happened in a fork since it was made. */
export interface ComparedFork {
  /** Its root. */
  root: string;
  /** Where it comes from. */
  origin: ForkOrigin;
  /** Files and links that differ. */
  files: number;
  /** Lines added in text files. */
  insertions: number;
  /** Lines removed in text files. */
  deletions: number;
  /** What differs, by path. */
  changed: ForkedFile[];
  /** What could not be read. */
  unreadable: Unreadable[];
  /** The sessions that were recorded in it, oldest first. */
  sessions: ForkSession[];
  /** How the command ended in it, if one was run. */
  command: CommandResult | null;
}

/** A file with a conflict. */
export interface Conflict {
  /** The path, with `/` between names. */
  filePath: string;
  /** The reason. */
  reason: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
  /** The lines; left out if the conflict is about the file as a whole. */
  lines?: ConflictLines[];
}

/** Lines that two authors changed. */
export interface ConflictLines {
  /** The first line in the file as it is left, from 1. */
  line: number;
  /** How many lines are there. */
  count: number;
  /** What is there. What is not UTF-8 is replaced. */
  mine: string;
  /** The other version: what was there before, or what an adopted fork has. */
  before: string;
}

/** How much was written, also what was rewritten or taken back later. */
export interface Contribution {
  /** Files. */
  files: number;
  /** Lines added. */
  insertions: number;
  /** Lines removed. */
  deletions: number;
  /** Lines that are still there. */
  left: number;
}

/** How to cut an agent's conversation to the point. */
export interface Conversation {
  /** The agent's name. */
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

/** What the user said about the author of a change. */
export type Correction = 'mine' | { agent: { session: string } };

/** Whose changes an operation takes back, and who else changed something since. */
export interface Coverage {
  /** Whose. */
  whose: Covered;
  /** The sessions, if it is theirs. */
  sessions: string[];
  /** Other sessions that changed something since; their changes stay. */
  otherSessions: string[];
  /** Whether you changed something since, which stays. */
  yours: boolean;
}

/** Whose changes. */
export type Covered = 'sessions' | 'chosen' | 'allAgents' | 'everyone';

/** A commit whose files were taken back. */
export interface CrossedCommit {
  /** Its id. */
  id: string;
  /** The first line of its message. */
  summary: string;
  /** The session during whose `git commit` it was made; `null` if it is not known to be an agent's. */
  session: string | null;
}

/** What an agent does to the world and cannot take back. */
export interface Effect {
  /** The agent's name for it. */
  key: string;
  /** The step it belongs to. */
  step_index: number | null;
  /** What the agent intended. */
  intent: JsonValue;
  /** When the intent was noted. */
  intended_at: Time;
  /** `null` also if that is the receipt: `received_at` says which. */
  receipt: JsonValue;
  /** When the receipt was noted. */
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
  /** Its id. */
  execution_id: string;
  /** The current one first. */
  branches: string[];
  /** Its session. */
  session: string | null;
  /** How many checkpoints it has. */
  checkpoints: number;
  /** The newest checkpoint of the current branch. */
  head: CheckpointRecord | null;
}

/** `checkpoint:list`: a file as it was when the answer to a message first named or changed it. */
export interface FileCheckpoint {
  /** Its id. */
  id: Id;
  /** The session. */
  sessionId: string;
  /** The message. */
  messageId: string;
  /** The path, with `/` between names. */
  filePath: string;
  /** Its contents, if they are UTF-8. */
  originalContent: string | null;
  /** Whether the file existed. */
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
  /** Its id in `checkpoint:list`. */
  id: Id;
  /** The path, with `/` between names. */
  filePath: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** One path that differs between two points, or between a point and the disk. */
export interface FileDiff {
  /** The path, with `/` between names. */
  filePath: string;
  /** The entry before. */
  before: Entry;
  /** The entry after. */
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
  /** The path that the file was renamed from; `before` is what was there. */
  renamedFrom?: string;
}

/** A path from the root of the workspace; flattened into the object that has it. */
export interface FilePath {
  /** The path, with `/` between names. */
  filePath: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** What happened to a file between a point and the next. */
export interface FileRow {
  /** The path, with `/` between names. */
  filePath: string;
  /** The path it was renamed from, if that happened here. */
  renamedFrom: string | null;
  /** The last point before it changed; `null`: older than all points. */
  point: Id | null;
  /** The session of the point. */
  session: string | null;
  /** The description of the point. */
  description: string;
  /** When it last changed here. */
  at: Time;
  /** What happened: `new`, `deleted`, `changed`, `mode 644 → 755`, and so on. */
  what: string;
  /** Who changed how much. */
  byAuthor: ByAuthor;
  /** Whether rewinds took back what the agent did. */
  takenBack: TakenBack;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** Files first seen after the point, by folder: new in an ignored folder, or not covered before. A rewind keeps them. */
export interface FirstSighting {
  /** The path, with `/` between names. */
  filePath: string;
  /** How many files were first seen in the folder; 0 for a file. */
  names: number;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** `fork` and `checkpoint:fork`. */
export interface ForkAnswer {
  /** The point that was forked. It is pinned or has a label. */
  point: Id;
  /** Its position in the log. */
  seq: number;
  /** The roots of the forks. */
  forks: string[];
  /** Files in each fork, without those of `--all`. */
  files: number;
  /** Their size in bytes. */
  bytes: number;
  /** How many of them were copied from disk; the others came from the store. */
  fromDisk: number;
  /** Files that `--all` added. */
  extraFiles: number;
  /** What existed at the point and is not in the forks. */
  missing: Note[];
  /** Paths that were not recorded yet at the point: they may have existed, and are not in the forks. */
  unknown: FilePath[];
  /** What is not recorded, and not in the forks. */
  leftOut: Note[];
  /** Executions whose state at the point was copied into the forks' stores. */
  executions: string[];
  /** How an agent's conversation continues in the forks; left out if it is not known. */
  conversation?: ForkedConversation;
}

/** Where a fork comes from. */
export interface ForkOrigin {
  /** The root of the workspace that was forked. */
  root: string;
  /** The point. */
  point: Id;
  /** Its position in that workspace's log. */
  seq: number;
  /** Its label or description. */
  description: string;
  /** When the fork was made. */
  forkedAt: Time;
}

/** A session that worked in a fork. */
export interface ForkSession {
  /** Its id. */
  id: string;
  /** The agent. */
  agent: string | null;
  /** How many of its prompts are recorded there. */
  prompts: number;
}

/** How an agent's conversation continues in forks, in a copy for each. */
export interface ForkedConversation {
  /** The agent's name. */
  agent: string;
  /** The agent's own id of it. */
  session: string;
  /** For each fork, a shell command that opens a copy of the conversation there, on the agent's screen. */
  commands: string[];
  /** For each fork, a shell command that continues without a screen from the point; append a prompt. Empty if the agent has none. */
  headless: string[];
  /** What to press on that screen, so that the copy ends at the point; left out if it is to be whole. */
  keys?: string;
}

/** One file of a fork that differs from what the fork got. */
export interface ForkedFile {
  /** The path, with `/` between names. */
  filePath: string;
  /** `new`, `deleted`, `mode 644 → 755`: what line counts do not show. */
  what: string;
  /** Lines added; `null`: it is not text, or its earlier contents are not at hand. */
  insertions: number | null;
  /** Lines removed. */
  deletions: number | null;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** Git after a rewind. */
export interface GitFollowUp {
  /** Before it. */
  before: GitState;
  /** After it. */
  after: GitState;
  /** What `git status` shows of the files that the rewind changed. Left out before the rewind, if they do not differ from the commit, and if git gave no answer. */
  status?: GitStatus;
}

/** The user's repository when the point was made. */
export interface GitState {
  /** The commit that is checked out. */
  head: string | null;
  /** The branch that is checked out. */
  branch: string | null;
}

/** What `git status` shows of the files that a rewind changed. */
export interface GitStatus {
  /** Files that differ from the checked out commit. */
  modified: number;
  /** Files that are staged and not in the commit. */
  added: number;
  /** Files that the commit has and the folder does not. */
  deleted: number;
  /** Files that git does not know. */
  untracked: number;
  /** The commits since the restored state that changed these files, newest first; empty if HEAD does not continue what was checked out then. */
  commits: CrossedCommit[];
  /** Drops the commits and keeps all files; `null` if it would drop more than what agents committed, or commits that a remote or a tag has. */
  reset: string | null;
}

/** What was checked out in git before and after something. */
export interface HeadMove {
  /** Before it. */
  before: GitState;
  /** After it. */
  after: GitState;
}

/** What was done to keep the home within its limit. */
export interface HomeCleanup {
  /** The setting `maxHomeBytes`. */
  limit: number;
  /** The size of all stores afterwards. */
  bytes: number;
  /** In stores of folders that no longer exist. */
  goneBytes: number;
  /** The workspaces that lost points. */
  workspaces: HomeCleanupWorkspace[];
}

/** A workspace that lost points. */
export interface HomeCleanupWorkspace {
  /** Its root. */
  root: string;
  /** How many points it lost. */
  points: number;
  /** The disk space that was reclaimed. */
  freedBytes: number;
}

/** `event:hook`. */
export interface HookAnswer {
  /** Whether the event was recorded as it should be. */
  ok: boolean;
  /** A line for the agent's model: which of its changes were taken back. */
  context?: string;
  /** What the log is missing, if anything. */
  error?: string;
}

/** 16 hexadecimal digits: the id of a point, a turn, a rewind or a copy of a file. */
export type Id = string;

/** A command for a folder that is not recorded, such as `node_modules`. */
export interface InstallHint {
  /** What to run. */
  command: string;
  /** Where to run it, from the root; `.` is the root itself. */
  directory: string;
  /** The folder that is not recorded. */
  folder: FilePath;
  /** The file that the rewind changes and the folder is made from; `null` if the folder is missing. */
  file: FilePath | null;
  /** The command that named the folder, if it is missing. */
  removedBy: string | null;
}

/** Who wrote a line. */
export type LineAuthor = 'you' | 'agent' | 'other' | 'before' | 'unknown';

/** What names a line's author. */
export type LineSource = 'log' | 'git' | 'note' | 'trace';

/** What a model wrote. */
export interface ModelStats {
  /** Its name; `null`: agents that did not name theirs. */
  model: string | null;
  /** Files. */
  files: number;
  /** Lines added. */
  insertions: number;
  /** Lines removed. */
  deletions: number;
  /** Lines that are still there. */
  left: number;
}

/** Why contents were not captured. */
export type NotCapturedReason = 'tooLarge' | 'deadline' | 'unreadable' | 'unstable' | 'purged' | 'special' | 'derived' | 'tooMany' | 'reserved' | 'damaged';

/** A path and a reason. */
export interface Note {
  /** The path, with `/` between names. */
  filePath: string;
  /** The reason. */
  reason: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** `resolve --list` and `checkpoint:conflicts`: a conflict that is not settled yet. */
export interface OpenConflict {
  /** The operation that left it. */
  operation: Id;
  /** The path, with `/` between names. */
  filePath: string;
  /** The reason. */
  reason: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
  /** The lines; left out if the conflict is about the file as a whole. */
  lines?: ConflictLines[];
}

/** The store is larger than `maxStoreBytes`. */
export interface OverLimit {
  /** The limit. */
  limit: number;
  /** The size of the store. */
  bytes: number;
  /** For the files as they are now. */
  presentBytes: number;
  /** For points with a label or a pin. */
  markedBytes: number;
}

/** The least certain evidence of what an agent did at this path. */
export interface PathEvidence {
  /** The path, with `/` between names. */
  filePath: string;
  /** The evidence. */
  evidence: Evidence;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** A point, with the sum of what changed between it and the next; or an operation (a rewind, undo or redo) with what it changed. */
export interface Point {
  /** Its id. */
  id: Id;
  /** Its position in the log. */
  seq: number;
  /** What made it. */
  kind: PointKind;
  /** The session whose prompt or step made it. */
  session: string | null;
  /** The agent's ids of the prompt. */
  messageIds: string[];
  /** The first words of the prompt. */
  description: string;
  /** Its label. */
  label: string | null;
  /** Whether it is pinned. */
  pinned: boolean;
  /** When it was made. */
  createdAt: Time;
  /** Files that changed after it. */
  filesChanged: number;
  /** Lines added after it. */
  insertions: number;
  /** Lines removed after it. */
  deletions: number;
  /** Paths whose contents were not captured after it. */
  notCaptured: number;
  /** Whether an agent's checkpoint names it. */
  hasState: boolean;
  /** How the tree was read for it. */
  vouchedBy: PointBasis;
  /** The same counts by author. What rewinds did is in none of them. */
  byAuthor: ByAuthor;
  /** Whether rewinds took back what its agent did; of an operation: whether it was undone. */
  takenBack: TakenBack;
  /** How git's HEAD moved until the next point; for the newest point: until now. Left out if it did not. */
  gitMoved?: HeadMove;
  /** Of a rewind: its point. Of an undo or redo: the operation. */
  of?: Id;
  /** Paths that could not be read when the point was made; left out if there are none. */
  unreadable?: number;
}

/** `scan`: the whole tree was scanned. `watch`: only the folders that the kernel reported as changed. */
export type PointBasis = 'scan' | 'watch';

/** The notification `point:created`. */
export interface PointCreated {
  /** The root of the workspace. */
  workspace: string;
  /** The new point. */
  point: Point;
}

/** What made a point. */
export type PointKind = 'prompt' | 'manual' | 'step' | 'safety' | 'rewind' | 'undo' | 'redo' | 'revert' | 'restore' | 'adopt' | 'resolve';

/** `checkpoint:preview`. */
export interface PreviewAnswer {
  /** Everything planned was done, with no conflict, error or missing contents. */
  success: boolean;
  /** The id of the operation; `null` in a dry run, and if nothing was done. */
  rewind: Id | null;
  /** The point that was restored; `null` for an undo or redo. */
  point: Id | null;
  /** A rewind to this point restores the files as they were before; `null` in a dry run. */
  safetyPoint: Id | null;
  /** Files that were written. */
  restoredFiles: string[];
  /** Files that were deleted. */
  deletedFiles: string[];
  /** Files from which only the agent's part was taken out. */
  mergedFiles: Note[];
  /** Files left as they are because they are not the agent's. */
  keptFiles: Note[];
  /** Files first seen since the point; they are kept. */
  firstSeen: FirstSighting[];
  /** Files with changes that cannot be taken back without destroying another author's work. These changes stay; a file that is also in `mergedFiles` or `restoredFiles` keeps only some lines. */
  conflicts: Conflict[];
  /** Files whose author is unclear; they are kept. */
  ambiguous: Note[];
  /** Files whose earlier contents were not captured. */
  notCaptured: Note[];
  /** How the authors of the taken back changes are known. */
  evidence: PathEvidence[];
  /** Remarks about single files. */
  notes: Note[];
  /** Files that could not be written. */
  errors: Problem[];
  /** `point:rewind` with this mark does what this preview shows, or nothing. */
  mark: string;
  /** Agents that were working; left out if there were none. */
  atWork?: ActiveSession[];
  /** How to cut the agent's conversation to the same point, if it went on after it. */
  conversation?: Conversation;
  /** Whose changes it covers; left out where that is the operation's. */
  covers?: Coverage;
  /** Git, if HEAD has moved since the restored state. Takeback does not move it. */
  git?: GitFollowUp;
  /** Commands that make folders again which are not recorded, or bring them in line. */
  hints?: InstallHint[];
  /** The exact bytes of restored and deleted names that are not UTF-8, as base64, by their text: one for each time it occurs in `restoredFiles`, then in `deletedFiles`. Left out if all names are UTF-8. */
  pathsBase64?: Record<string, string[]>;
  /** The agent's state that was moved together with the files. */
  state?: StateReceipt;
  /** Changes whose only evidence is that they happened while a call ran. */
  windows?: Window[];
}

/** A path and the error it failed with. */
export interface Problem {
  /** The path, with `/` between names. */
  filePath: string;
  /** The error. */
  error: string;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** What came of a prompt. */
export interface PromptStats {
  /** The prompt's point. */
  point: Id;
  /** Its session. */
  session: string | null;
  /** The first words of the prompt. */
  description: string;
  /** Files. */
  files: number;
  /** Lines added. */
  insertions: number;
  /** Lines removed. */
  deletions: number;
  /** Lines that are still there. */
  left: number;
}

/** `rewind`, `undo`, `redo`, `revert`, `restore`, `resolve`, `state rollback` and their methods: what was done, verified on disk; in a dry run, what would be done. */
export interface Receipt {
  /** Everything planned was done, with no conflict, error or missing contents. */
  success: boolean;
  /** The id of the operation; `null` in a dry run, and if nothing was done. */
  rewind: Id | null;
  /** The point that was restored; `null` for an undo or redo. */
  point: Id | null;
  /** A rewind to this point restores the files as they were before; `null` in a dry run. */
  safetyPoint: Id | null;
  /** Files that were written. */
  restoredFiles: string[];
  /** Files that were deleted. */
  deletedFiles: string[];
  /** Files from which only the agent's part was taken out. */
  mergedFiles: Note[];
  /** Files left as they are because they are not the agent's. */
  keptFiles: Note[];
  /** Files first seen since the point; they are kept. */
  firstSeen: FirstSighting[];
  /** Files with changes that cannot be taken back without destroying another author's work. These changes stay; a file that is also in `mergedFiles` or `restoredFiles` keeps only some lines. */
  conflicts: Conflict[];
  /** Files whose author is unclear; they are kept. */
  ambiguous: Note[];
  /** Files whose earlier contents were not captured. */
  notCaptured: Note[];
  /** How the authors of the taken back changes are known. */
  evidence: PathEvidence[];
  /** Remarks about single files. */
  notes: Note[];
  /** Files that could not be written. */
  errors: Problem[];
  /** Agents that were working; left out if there were none. */
  atWork?: ActiveSession[];
  /** How to cut the agent's conversation to the same point, if it went on after it. */
  conversation?: Conversation;
  /** Whose changes it covers; left out where that is the operation's. */
  covers?: Coverage;
  /** Git, if HEAD has moved since the restored state. Takeback does not move it. */
  git?: GitFollowUp;
  /** Commands that make folders again which are not recorded, or bring them in line. */
  hints?: InstallHint[];
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
  /** Always true. */
  ok: true;
  /** The kind of event. */
  event: string;
  /** The head of the log. */
  seq: number;
  /** The point that the event made, if any. */
  point: Id | null;
  /** Paths whose contents were not captured. */
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
  /** Always false. */
  ok: false;
  /** Why. */
  error: string;
  /** Absent if the line is not an event. */
  event?: string;
}

/** `state resume` and `state:resume`. */
export interface ResumeAnswer {
  /** Its id. */
  id: string;
  /** Its execution. */
  execution_id: string;
  /** The name of the step. */
  step_name: string;
  /** The number of the step. */
  step_index: number;
  /** The first is 1. */
  attempt: number;
  /** Its branch. */
  branch: string;
  /** The checkpoint before it on the branch. */
  parent: string | null;
  /** When it was made. */
  timestamp: Time;
  /** How the step ended. */
  status: CheckpointStatus;
  /** Why the step failed. */
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
  /** The agent's state. */
  state: JsonValue;
  /** The agent's context. */
  context: JsonValue;
  /** The agent's variables. */
  variables: JsonValue;
  /** The agent's metadata. */
  metadata: JsonValue;
  /** Intended, with no receipt: they may or may not have happened. */
  ambiguous_effects: Effect[];
  /** Effects of later steps that have a receipt. */
  happened_effects: Effect[];
}

/** `state save` and `state:save`. */
export interface SaveAnswer {
  /** Its id. */
  id: string;
  /** Its execution. */
  execution_id: string;
  /** The name of the step. */
  step_name: string;
  /** The number of the step. */
  step_index: number;
  /** The first is 1. */
  attempt: number;
  /** Its branch. */
  branch: string;
  /** The checkpoint before it on the branch. */
  parent: string | null;
  /** When it was made. */
  timestamp: Time;
  /** How the step ended. */
  status: CheckpointStatus;
  /** Why the step failed. */
  error: string | null;
  /** The point with its files; `null`: none, or expired. */
  point: Id | null;
  /** False if the same checkpoint was saved before. */
  is_new: boolean;
  /** Paths whose contents were not captured. */
  not_captured: Note[];
}

/** `server:info`. */
export interface ServerInfo {
  /** `takeback`. */
  name: string;
  /** The server's version. */
  version: string;
  /** Keys and methods may be added without a new number. */
  protocol: number;
  /** The server's process. */
  pid: number;
  /** Takeback's home. */
  home: string;
  /** The folder in which the server was started. */
  workspace: string;
  /** The user's own setting. */
  allowAgentRewind: boolean;
  /** It was started with `--watch`. */
  watch: boolean;
  /** The names of all methods. */
  methods: string[];
  /** What a client may send and leave unread. */
  limits: ServerLimits;
}

/** Limits for clients. */
export interface ServerLimits {
  /** Bytes of a message. */
  messageBytes: number;
  /** Calls in a batch. */
  batchCalls: number;
  /** Bytes of answers that the client has not read. */
  unreadBytes: number;
  /** How long a client may read nothing, in milliseconds. */
  stallMs: number;
  /** Concurrent clients. */
  clients: number;
}

/** The method `status`, which reads the store and not the files. */
export interface ServerStatus {
  /** The root of the workspace. */
  root: string;
  /** Whether recording is on. */
  recording: boolean;
  /** The head of the log. */
  seq: number;
  /** How many points there are. */
  points: number;
  /** How many sessions there are. */
  sessions: number;
  /** How many turns are open. */
  openTurns: number;
  /** How many calls are open. */
  openCalls: number;
  /** The newest. */
  point: Point | null;
  /** `null` without `--watch`. */
  watch: WatchState | null;
}

/** An agent's conversation. */
export interface Session {
  /** Its id. */
  id: string;
  /** The agent's name, if known. */
  agent: string | null;
  /** The model that it last named. */
  model: string | null;
  /** The session it was resumed or forked from. */
  parent: string | null;
  /** When it started. */
  startedAt: Time;
  /** When it ended. */
  endedAt: Time | null;
  /** When it was archived. */
  archivedAt: Time | null;
  /** Whether a turn is open and the agent may be alive. */
  atWork: boolean;
  /** How many points it has. */
  points: number;
  /** The first prompt that is kept. */
  description: string;
}

/** What a session wrote. */
export interface SessionStats {
  /** The session. */
  session: string;
  /** Its agent. */
  agent: string | null;
  /** The model that it last named. */
  model: string | null;
  /** Files. */
  files: number;
  /** Lines added. */
  insertions: number;
  /** Lines removed. */
  deletions: number;
  /** Lines that are still there. */
  left: number;
}

/** A file that several forks changed. */
export interface SharedFile {
  /** The path, with `/` between names. */
  filePath: string;
  /** The roots of the forks. */
  forks: string[];
  /** Whether all of them have the same result. */
  same: boolean;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** `show` and `point:show`: a point, and every change between it and the next. */
export interface ShowAnswer {
  /** Its id. */
  id: Id;
  /** Its position in the log. */
  seq: number;
  /** What made it. */
  kind: PointKind;
  /** The session whose prompt or step made it. */
  session: string | null;
  /** The agent's ids of the prompt. */
  messageIds: string[];
  /** The first words of the prompt. */
  description: string;
  /** Its label. */
  label: string | null;
  /** Whether it is pinned. */
  pinned: boolean;
  /** When it was made. */
  createdAt: Time;
  /** Files that changed after it. */
  filesChanged: number;
  /** Lines added after it. */
  insertions: number;
  /** Lines removed after it. */
  deletions: number;
  /** Paths whose contents were not captured after it. */
  notCaptured: number;
  /** Whether an agent's checkpoint names it. */
  hasState: boolean;
  /** How the tree was read for it. */
  vouchedBy: PointBasis;
  /** The same counts by author. What rewinds did is in none of them. */
  byAuthor: ByAuthor;
  /** Whether rewinds took back what its agent did; of an operation: whether it was undone. */
  takenBack: TakenBack;
  /** The whole prompt; `null` if no prompt made the point, or it is not known. */
  prompt: string | null;
  /** The model that worked on the prompt, where the agent named it. */
  model: string | null;
  /** The state of the user's git repository, if there is one. */
  git: GitState | null;
  /** The changes after it, oldest first. */
  changes: Change[];
  /** The calls of the point's turn, in order; then other calls that the authors of the changes name. */
  calls: Call[];
  /** How git's HEAD moved until the next point; for the newest point: until now. Left out if it did not. */
  gitMoved?: HeadMove;
  /** Of a rewind: its point. Of an undo or redo: the operation. */
  of?: Id;
  /** Paths that could not be read when the point was made; left out if there are none. */
  unreadable?: number;
}

/** `state delete` and `state:delete`. */
export interface StateDeleteAnswer {
  /** The execution. */
  execution_id: string;
  /** `null`: the whole execution. */
  id: string | null;
  /** How many checkpoints it has. */
  checkpoints: number;
  /** False in a dry run. */
  deleted: boolean;
}

/** `state fork` and `state:fork`. */
export interface StateForkAnswer {
  /** The execution. */
  execution_id: string;
  /** The new branch. */
  branch: string;
  /** The checkpoint that the branch starts from. */
  from: string;
}

/** `state list` and `state:list`: the executions, newest first; of one execution, its checkpoints by step and attempt. */
export type StateListAnswer = Execution[] | CheckpointRecord[];

/** What happened to an agent's state. */
export interface StateReceipt {
  /** The execution. */
  execution: string;
  /** The branch. */
  branch: string;
  /** The branch's newest checkpoint afterwards. */
  checkpoint: string | null;
  /** False in a dry run, and if nothing was done. */
  moved: boolean;
  /** It was not moved because the agent has saved newer checkpoints since. */
  stays: boolean;
  /** Why the state was not moved, if it failed. */
  error: string | null;
}

/** `stats` and `history:stats`. */
export interface StatsAnswer {
  /** All agents. */
  agents: Contribution;
  /** You. */
  you: Contribution;
  /** An agent or you: the evidence does not tell. */
  unclear: Contribution;
  /** Sessions that were deleted since. */
  unknown: Contribution;
  /** Each session, by when it first wrote. */
  sessions: SessionStats[];
  /** Each model. */
  models: ModelStats[];
  /** Each prompt that changed something, oldest first. */
  prompts: PromptStats[];
  /** Files of which it is not known what is left: not text, too large, or lost. */
  notFollowed: string[];
}

/** `point:subscribe`. */
export interface SubscribeAnswer {
  /** The root of the workspace. */
  workspace: string;
}

/** How much was taken back by rewinds that are in effect. */
export type TakenBack = 'no' | 'partly' | 'yes';

/** A moment in ISO 8601, UTC. */
export type Time = string;

/** A folder or file that could not be read. What is known there counts as not captured. */
export interface Unreadable {
  /** The path, with `/` between names. */
  filePath: string;
  /** Whether it is a file or a folder. */
  kind: UnreadableKind;
  /** Known names below it that could not be compared. */
  known: number;
  /** The exact bytes, where the path is not UTF-8 and `filePath` is lossy. */
  filePathBase64?: string;
}

/** Whether a file or a folder could not be read. */
export type UnreadableKind = 'file' | 'folder';

/** `verify` and `checkpoint:verify`. */
export interface VerifyAnswer {
  /** Whether there is no damage. */
  ok: boolean;
  /** What is damaged. */
  damage: string[];
}

/** How many folders are watched, or why the next point scans everything: the other one is `null`. */
export interface WatchState {
  /** How many folders are watched. */
  folders: number | null;
  /** Why the next point scans everything. */
  why: string | null;
}

/** `why` and `history:why`: why a line is there. */
export interface WhyAnswer {
  /** Its number, from 1. */
  line: number;
  /** The line without its end. */
  text: string;
  /** Who. `other`: a commit's author, or a person named by another tool. `before`: older than the log. */
  author: LineAuthor;
  /** How an agent is known to be the author, or possibly the author. */
  evidence: Evidence | null;
  /** What names the author; `null`: nothing does. */
  source: LineSource | null;
  /** The session. */
  session: string | null;
  /** The agent. */
  agent: string | null;
  /** The model, where the agent said it. */
  model: string | null;
  /** The point of the prompt. */
  point: Id | null;
  /** The tool call. */
  call: string | null;
  /** The tool. */
  tool: string | null;
  /** The beginning of the prompt. */
  prompt: string | null;
  /** When it was written. */
  at: Time | null;
  /** The commit that it came from, where git says so. */
  commit: string | null;
  /** The name of an author who is not you. */
  name: string | null;
  /** The prompt in full. */
  wholePrompt: string | null;
  /** The command, of a shell call. */
  command: string | null;
  /** The path that the line was written to, if the file or the line was moved since. */
  writtenTo: string | null;
  /** The change that wrote the line, in git's format; `null`: the log does not have it. */
  patch: string | null;
  /** The first line of the commit's message. */
  summary: string | null;
  /** What could not be asked about; the author may be missing because of it. */
  problems: string[];
  /** The exact bytes, where the line is not UTF-8 and `text` is lossy. */
  textBase64?: string;
}

/** A call, and how many paths changed while it ran. */
export interface Window {
  /** The call's session. */
  session: string;
  /** The call. */
  call: string;
  /** The call's tool. */
  tool: string;
  /** The command, for a shell call. */
  command: string | null;
  /** How many paths changed. */
  paths: number;
}

/** The result of every method. */
export interface Results {
  'checkpoint:adopt': ActionAnswer;
  'checkpoint:cleanup': number;
  'checkpoint:compare': CompareAnswer;
  'checkpoint:conflicts': OpenConflict[];
  'checkpoint:create': CheckpointAnswer;
  'checkpoint:diff': FileDiff[];
  'checkpoint:fork': ForkAnswer;
  'checkpoint:list': FileCheckpoint[];
  'checkpoint:preview': PreviewAnswer;
  'checkpoint:redo': Receipt;
  'checkpoint:resolve': ActionAnswer;
  'checkpoint:restore': ActionAnswer;
  'checkpoint:revert': ActionAnswer;
  'checkpoint:rewind': Receipt;
  'checkpoint:undo': Receipt;
  'checkpoint:verify': VerifyAnswer;
  'event:hook': HookAnswer;
  'event:record': RecordAnswer;
  'history:bisect': BisectAnswer;
  'history:blame': BlameReport;
  'history:cat': CatAnswer;
  'history:path': FileRow[];
  'history:stats': StatsAnswer;
  'history:why': WhyAnswer;
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
  'checkpoint:adopt',
  'checkpoint:cleanup',
  'checkpoint:compare',
  'checkpoint:conflicts',
  'checkpoint:create',
  'checkpoint:diff',
  'checkpoint:fork',
  'checkpoint:list',
  'checkpoint:preview',
  'checkpoint:redo',
  'checkpoint:resolve',
  'checkpoint:restore',
  'checkpoint:revert',
  'checkpoint:rewind',
  'checkpoint:undo',
  'checkpoint:verify',
  'event:hook',
  'event:record',
  'history:bisect',
  'history:blame',
  'history:cat',
  'history:path',
  'history:stats',
  'history:why',
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
