// `takeback mcp`, driven by the clients that agents are built with. TAKEBACK_PROGRAMS names the folder of
// the programs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';

import { Client as NewClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as NewTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const program = join(process.env.TAKEBACK_PROGRAMS, 'takeback');

const connected = [];
// Also after a failed assertion: an open client keeps its server and this process alive.
afterEach(() => Promise.all(connected.splice(0).map((client) => client.close())));

const folders = [];
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A folder with a point `first`, after which an agent changed `a.txt` and made `b.txt`, and the user made `c.txt`. */
function user() {
  const folder = mkdtempSync(join(tmpdir(), 'takeback-mcp-'));
  folders.push(folder);
  const [work, home] = [join(folder, 'work'), join(folder, 'home')];
  mkdirSync(work);
  mkdirSync(home);
  const env = { HOME: home, PATH: process.env.PATH };
  const takeback = (args, input = '') => execFileSync(program, args, { cwd: work, env, input, encoding: 'utf8' });
  const write = (name, text) => writeFileSync(join(work, name), text);
  const read = (name) => (existsSync(join(work, name)) ? readFileSync(join(work, name), 'utf8') : null);
  const record = (event) => takeback(['record'], `${JSON.stringify({ session: 's1', ...event })}\n`);
  write('a.txt', 'one\ntwo\n');
  takeback(['checkpoint', 'first']);
  record({ event: 'prompt', message: 'm1', text: 'Make it better' });
  record({ event: 'before_tool', call: 'c1', tool: 'Write', paths: ['a.txt', 'b.txt'] });
  write('a.txt', 'one\nTWO\n');
  write('b.txt', 'new\n');
  record({ event: 'after_tool', call: 'c1', tool: 'Write' });
  record({ event: 'turn_end' });
  write('c.txt', 'mine\n');
  return { work, env, takeback, write, read };
}

/** Each connects to a server of its own; `answer` is the user; without it no question can be asked. */
const clients = {
  'the older client': async ({ work, env }, answer, args = []) => {
    const client = new OldClient({ name: 'test', version: '1' }, { capabilities: answer ? { elicitation: {} } : {} });
    if (answer) client.setRequestHandler(ElicitRequestSchema, (request) => answer(request.params));
    connected.push(client);
    await client.connect(new OldTransport({ command: program, args: ['mcp', ...args], cwd: work, env }));
    return client;
  },
  'the newer client, with initialize': (user, answer, args) => newer(user, answer, args, 'legacy'),
  'the newer client, stateless': (user, answer, args) => newer(user, answer, args, { pin: '2026-07-28' }),
};

async function newer({ work, env }, answer, args = [], mode) {
  const client = new NewClient(
    { name: 'test', version: '1' },
    { capabilities: answer ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode } },
  );
  if (answer) client.setRequestHandler('elicitation/create', (request) => answer(request.params));
  connected.push(client);
  await client.connect(new NewTransport({ command: program, args: ['mcp', ...args], cwd: work, env }));
  assert.equal(client.getProtocolEra(), mode === 'legacy' ? 'legacy' : 'modern');
  return client;
}

const text = (result) => result.content[0].text;

for (const [name, connect] of Object.entries(clients)) {
  test(`${name}: every tool that looks`, async () => {
    const folder = user();
    const client = await connect(folder);
    const { tools } = await client.listTools();
    const names = ['list_points', 'show_point', 'diff', 'blame', 'why', 'history', 'stats', 'cat'];
    names.push('preview_rewind', 'preview_revert', 'checkpoint', 'rewind', 'revert', 'restore');
    assert.deepEqual(tools.map((tool) => tool.name), names);
    // The client compares every structured answer with the schema that was announced.
    const call = (name, args = {}) => client.callTool({ name, arguments: args });
    const points = await call('list_points');
    assert.deepEqual(points.structuredContent.points.map((point) => point.description), ['Make it better', 'first']);
    assert.match(text(points), /prompt “Make it better” {2}\(session s1\)/);
    assert.match(text(await call('show_point', { point: 'm1' })), /- created b\.txt by session s1 with Write/);
    assert.match(text(await call('diff', { from: 'first' })), /^-two\n\+TWO$/m);
    assert.match(text(await call('diff', { from: 'm1!', by: 'agent' })), /^\+TWO$/m);
    const ofAgent = await call('list_points', { by: 'agent', grep: 'better', paths: ['a.txt'] });
    assert.deepEqual(ofAgent.structuredContent.points.map((point) => point.kind), ['prompt']);
    assert.match(text(await call('blame', { path: 'a.txt' })), /^2 by session s1 with Write, point/m);
    assert.match(text(await call('why', { path: 'a.txt', line: 2 })), /^Prompt: “Make it better”$/m);
    const history = await call('history', { path: 'a.txt' });
    assert.equal(history.structuredContent.rows[0].byAuthor.agent.insertions, 1);
    assert.match(text(await call('stats')), /^the user: 1 file, \+1 -0; 1 of them left$/m);
    assert.equal(text(await call('cat', { point: 'first', path: 'a.txt', lines: '2' })), 'two\n');
    const preview = await call('preview_rewind', { point: 'first' });
    assert.deepEqual(preview.structuredContent.deletedFiles, ['b.txt']);
    const made = await call('checkpoint', { label: 'mine' });
    assert.equal(text(await call('list_points', { limit: 1 })).includes(made.structuredContent.id), true);
    const unknown = await call('show_point', { point: 'nonsense' });
    assert.equal(unknown.isError, true);
    const refused = await call('rewind', { point: 'first' });
    assert.equal(refused.isError, true);
    assert.match(text(refused), /takeback rewind/);
    assert.equal(folder.read('b.txt'), 'new\n');
  });

  test(`${name}: a rewind with the user's leave`, async () => {
    const folder = user();
    const asked = [];
    let action = 'decline';
    const client = await connect(folder, (params) => {
      asked.push(params.message);
      return action === 'accept' ? { action, content: {} } : { action };
    });
    const rewind = () => client.callTool({ name: 'rewind', arguments: { point: 'first' } });
    const declined = await rewind();
    assert.equal(declined.structuredContent.outcome, 'declined');
    assert.equal(folder.read('b.txt'), 'new\n');
    action = 'accept';
    const done = await rewind();
    assert.equal(done.structuredContent.outcome, 'done');
    assert.equal(asked.length, 2);
    assert.match(asked[1], /Would delete \(not there at the point\) \(1\):\n- b\.txt\n/);
    assert.deepEqual(['a.txt', 'b.txt', 'c.txt'].map(folder.read), ['one\ntwo\n', null, 'mine\n']);
  });

  test(`${name}: files that change before the answer`, async () => {
    const folder = user();
    const asked = [];
    const client = await connect(folder, (params) => {
      asked.push(params.message);
      if (asked.length === 1) folder.write('b.txt', 'by the user\n');
      return { action: 'accept', content: {} };
    });
    const done = await client.callTool({ name: 'rewind', arguments: { point: 'first' } });
    assert.equal(done.structuredContent.outcome, 'done');
    assert.equal(asked.length, 2);
    assert.match(asked[1], /^Something changed in the meantime\./);
    assert.equal(folder.read('b.txt'), 'by the user\n');
  });
}

test('a user who has allowed it is not asked', async () => {
  const folder = user();
  const client = await clients['the older client'](folder, undefined, ['--allow-rewind']);
  const done = await client.callTool({ name: 'rewind', arguments: { point: 'first' } });
  assert.equal(done.structuredContent.outcome, 'done');
  assert.equal(folder.read('b.txt'), null);
});
