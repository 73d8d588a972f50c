// Connects to a server: at a known socket, in a program of its own, or the one that serves this user.

import { execFile, spawn } from 'node:child_process';
import { connect as dial, type Socket } from 'node:net';
import { resolve } from 'node:path';

import { Client } from './client.js';
import { ConnectionLost } from './errors.js';

interface WorkspaceOption {
  /**
   * The folder of every call that names no other. By default the current folder of this process: a server
   * may have been started anywhere.
   */
  workspace?: string | undefined;
}

export type ConnectOptions = WorkspaceOption &
  (
    | { /** The path of a socket. */ socket: string; command?: never; program?: never }
    | {
        /** Started for this client alone: `['takeback', 'serve', '--stdio']`. */
        command: readonly [string, ...string[]];
        socket?: never;
        program?: never;
      }
    | {
        /** Without both, `takeback serve --ensure` finds the socket; this is the path of `takeback`. */
        program?: string;
        socket?: never;
        command?: never;
      }
  );

export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const workspace = resolve(options.workspace ?? process.cwd());
  if (options.command !== undefined) return started(options.command, workspace);
  const path = options.socket ?? (await ensured(options.program ?? 'takeback'));
  const socket = await dialled(path);
  return new Client({ from: socket, to: socket }, workspace);
}

function started(
  [program, ...args]: readonly [string, ...string[]],
  workspace: string,
): Promise<Client> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.once('error', (cause) => {
      reject(new ConnectionLost(`${program} did not start`, { cause }));
    });
    child.once('spawn', () => {
      resolve(new Client({ from: child.stdout, to: child.stdin }, workspace));
    });
  });
}

/** The socket of the server that serves this user; started, if there is none. */
function ensured(program: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, ['serve', '--ensure', '--json'], (cause, stdout, stderr) => {
      if (cause) {
        const said = stderr.trim() || `${program} serve --ensure failed`;
        reject(new ConnectionLost(said, { cause }));
        return;
      }
      try {
        resolve((JSON.parse(stdout) as { socket: string }).socket);
      } catch (cause) {
        reject(new ConnectionLost(`${program} is no takeback: ${stdout.slice(0, 80)}`, { cause }));
      }
    });
  });
}

function dialled(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = dial(path);
    socket.once('connect', () => {
      socket.off('error', refused);
      resolve(socket);
    });
    const refused = (error: Error): void =>
      reject(new ConnectionLost(`no server listens at ${path}`, { cause: error }));
    socket.once('error', refused);
  });
}
