// A user with their own folder and home, and the real program.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';

import { connect, type Client } from '../src/index.js';

const given = process.env['TAKEBACK_BIN'];
if (given === undefined) throw new Error('TAKEBACK_BIN names no program to test against');
const program: string = given;

export class User {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'tb-')));
  readonly work = join(this.folder, 'work');
  readonly home = join(this.folder, 'home');
  readonly #servers: ChildProcess[] = [];

  constructor(files: Record<string, string | Buffer> = {}) {
    for (const folder of [this.work, this.home]) mkdirSync(folder);
    for (const [path, text] of Object.entries(files)) this.write(path, text);
    // Programs that the client starts inherit the environment of this process.
    process.env['TAKEBACK_HOME'] = join(this.home, '.takeback');
    delete process.env['XDG_RUNTIME_DIR'];
    // Generous time limits: the machine may be busy.
    process.env['TAKEBACK_HOOK_DEADLINE_MS'] = '60000';
    process.env['TAKEBACK_SCAN_BUDGET_MS'] = '60000';
  }

  write(path: string, text: string | Buffer): void {
    writeFileSync(join(this.work, path), text);
  }

  read(path: string): string {
    return readFileSync(join(this.work, path), 'utf8');
  }

  run(...args: string[]): void {
    const done = spawnSync(program, ['-C', this.work, ...args], { encoding: 'utf8' });
    if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.stderr}`);
  }

  stdio(): Promise<Client> {
    return connect({ command: [program, 'serve', '--stdio'], workspace: this.work });
  }

  /** A server on a socket, and where that is. */
  async serve(): Promise<{ socket: string; server: ChildProcess }> {
    const server = spawn(program, ['serve', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#servers.push(server);
    const said = await new Promise<Buffer>((resolve) => server.stdout.once('data', resolve));
    return { socket: (JSON.parse(said.toString()) as { socket: string }).socket, server };
  }

  ensured(): Promise<Client> {
    return connect({ program, workspace: this.work });
  }

  gone(): void {
    for (const server of this.#servers) server.kill('SIGKILL');
    rmSync(this.folder, { recursive: true });
  }
}

/** An agent's edit. */
export async function edit(
  client: Client,
  user: User,
  session: string,
  call: string,
  path: string,
  text: string,
): Promise<void> {
  await client.event.record({ event: 'before_tool', session, call, tool: 'Edit', paths: [path] });
  user.write(path, text);
  await client.event.record({ event: 'after_tool', session, call });
}

/** Two prompts, an edit after each. */
export async function story(client: Client, user: User): Promise<void> {
  for (const [message, text] of [
    ['m1', 'two\n'],
    ['m2', 'three\n'],
  ] as const) {
    await client.event.record({ event: 'prompt', session: 's1', message, text });
    await edit(client, user, 's1', message, 'a.txt', text);
    await client.event.record({ event: 'turn_end', session: 's1' });
  }
}
