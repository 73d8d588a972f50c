// What a caller sends: an agent's events and checkpoints.

import type { JsonValue } from './types.js';

/** A checkpoint to save. */
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

/** How the conflicts of one file are settled. */
export interface FileChoices {
  /** As `checkpoint:conflicts` names it. */
  filePath: string;
  /** One for each place, in order; `null` leaves it open. A conflict without lines has one. */
  places: ('mine' | 'before' | { text: string } | null)[];
}

/** An event of an agent, as a line of `takeback record`. */
export type AgentEvent =
  | {
      event: 'session_start';
      session: string;
      agent?: string;
      parent?: string;
      /** The agent's process: its death ends the session. */
      pid?: number;
      model?: string;
    }
  | { event: 'prompt'; session: string; message?: string; text: string; model?: string }
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
  | { event: 'turn_end'; session: string; model?: string }
  | { event: 'session_end'; session: string; model?: string }
  | { event: 'step'; session: string; checkpoint: NewStateCheckpoint };
