// The client against the real program, on standard input and output.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';

import {
  connect,
  ConnectionLost,
  METHODS,
  TakebackError,
  type Client,
  type FileCheckpoint,
  type Receipt,
} from '../src/index.js';
import { edit, story, User } from './user.js';

let user: User;
let client: Client;

beforeEach(async () => {
  user = new User({ 'a.txt': 'one\n', image: Buffer.from([0xff, 0x00]) });
  client = await user.stdio();
});

afterEach(async () => {
  await client.close();
  user.gone();
});

/** What a call is refused with. */
async function refusal(call: Promise<unknown>): Promise<TakebackError> {
  const why = await call.then(
    () => assert.fail('it was not refused'),
    (error: unknown) => error,
  );
  assert.ok(why instanceof TakebackError, String(why));
  return why;
}

test('the client knows the methods of the server', async () => {
  const info = await client.server.info();
  assert.equal(info.name, 'takeback');
  assert.equal(info.protocol, 1);
  assert.deepEqual([...METHODS].sort(), [...info.methods].sort());
});

test('file checkpoints are listed, rewound and cleaned up', async () => {
  await story(client, user);
  await edit(client, user, 's1', 'c', 'image', 'text');
  const listed: FileCheckpoint[] = await client.checkpoint.list('s1');
  const known = { sessionId: 's1', fileExisted: true };
  const bytes = { originalContent: null, originalContentBase64: '/wA=' };
  const settled = listed.map(({ id: _id, createdAt: _createdAt, ...rest }) => rest);
  assert.deepEqual(settled.slice(0, 2), [
    { ...known, messageId: 'm1', filePath: 'a.txt', originalContent: 'one\n' },
    { ...known, messageId: 'm2', filePath: 'a.txt', originalContent: 'two\n' },
  ]);
  assert.deepEqual(settled[2], { ...known, ...bytes, messageId: settled[2]?.messageId, filePath: 'image' });
  const age = (one: FileCheckpoint): number => Math.abs(Date.now() - one.createdAt);
  assert.ok(listed.every((one) => age(one) < 600_000));
  const result: Receipt = await client.checkpoint.rewind('s1', 'm1');
  assert.deepEqual(
    [result.success, result.restoredFiles, result.deletedFiles, result.errors],
    [true, ['a.txt', 'image'], [], []],
  );
  assert.equal(user.read('a.txt'), 'one\n');
  assert.equal(await client.checkpoint.cleanup(), 0);
});

test('questions about files are answered', async () => {
  await story(client, user);
  const { lines, problems } = await client.history.blame('a.txt');
  assert.deepEqual(problems, []);
  assert.deepEqual(
    lines.map((line) => [line.line, line.text, line.author, line.prompt]),
    [[1, 'three', 'agent', 'three']],
  );
  assert.equal((await client.history.why('a.txt:1')).tool, 'Edit');
  const past = await client.history.path('a.txt');
  assert.deepEqual(past.slice(0, 2).map((row) => [row.what, row.byAuthor.agent.insertions]), [
    ['changed', 1],
    ['changed', 1],
  ]);
  assert.equal((await client.history.cat('m2:a.txt')).text, 'two\n');
  const cut = await client.history.cat('m2:a.txt', { lines: '1', maxBytes: 2 });
  assert.deepEqual([cut.text, cut.size, cut.cut], ['tw', 4, true]);
  assert.equal((await refusal(client.history.blame('none'))).kind, 'unknownPath');
  assert.equal((await refusal(client.history.cat('m2:image', { lines: '1' }))).kind, 'notText');
  assert.equal((await client.history.stats()).prompts.length, 2);
  const [own] = await client.checkpoint.diff({ from: 'm1', by: 'agent' });
  assert.equal(own?.filePath, 'a.txt');
  const found = await client.point.list({ grep: 'two', by: 'agent', paths: ['a.txt'] });
  assert.deepEqual(found.map((point) => point.description), ['two']);
});

test('bisect finds the prompt after which a command fails', async () => {
  await client.checkpoint.create({ label: 'start' });
  await story(client, user);
  const found = await client.history.bisect(['grep', '-qv', 'three', 'a.txt'], { good: 'start' });
  assert.deepEqual([found.prompt, found.author.kind], ['three', 'agent']);
});

test('one turn is taken back, and conflicts are settled', async () => {
  await story(client, user);
  const shown = await client.checkpoint.revert('m1', { dryRun: true });
  assert.equal(shown.conflicts.length, 1);
  await client.checkpoint.revert('m1', { mark: shown.mark ?? '' });
  assert.equal(user.read('a.txt'), 'three\n');
  const taken = await client.checkpoint.revert('m1', { conflicts: 'take' });
  assert.equal(user.read('a.txt'), 'one\n');
  await client.checkpoint.undo({ operation: taken.rewind ?? '' });
  assert.equal(user.read('a.txt'), 'three\n');
  const restored = await client.checkpoint.restore(['a.txt'], { from: 'm2' });
  assert.deepEqual([restored.success, user.read('a.txt')], [true, 'two\n']);
  assert.deepEqual(await client.checkpoint.conflicts(), []);
  assert.equal((await refusal(client.checkpoint.resolve({ take: 'mine' }))).kind, 'nothingToDo');
});

test('points are made, shown and restored', async () => {
  const made = await client.checkpoint.create({ label: 'start' });
  await story(client, user);
  const points = await client.point.list();
  assert.deepEqual(points.map((point) => point.description), ['three', 'two', 'start']);
  assert.equal(points[2]?.id, made.id);
  const shown = await client.point.show('m1');
  const authors = shown.changes.map((change) => [change.filePath, change.author.kind]);
  assert.deepEqual(authors, [['a.txt', 'agent']]);
  const [diff] = await client.checkpoint.diff({ from: 'start' });
  assert.deepEqual([diff?.filePath, diff?.insertions, diff?.deletions], ['a.txt', 1, 1]);
  assert.deepEqual((await client.checkpoint.preview('m2')).restoredFiles, ['a.txt']);
  assert.equal((await client.point.rewind('m2', { dryRun: true })).safetyPoint, null);
  assert.equal(user.read('a.txt'), 'three\n');
  assert.equal((await client.point.rewind('m2')).success, true);
  assert.equal(user.read('a.txt'), 'two\n');
  await client.checkpoint.undo();
  assert.equal(user.read('a.txt'), 'three\n');
  await client.checkpoint.redo();
  assert.equal(user.read('a.txt'), 'two\n');
  assert.deepEqual(await client.checkpoint.verify(), { ok: true, damage: [] });
  const status = await client.status();
  assert.deepEqual([status.root, status.points, status.point?.description], [user.work, 3, 'three']);
});

test('sessions', async () => {
  await story(client, user);
  const listed = (await client.session.list()).map((session) => [session.id, session.points]);
  assert.deepEqual(listed, [['s1', 2]]);
  assert.equal((await client.session.archive('s1')).keptDays, 7);
  assert.deepEqual((await client.session.delete('s1')).sessions, ['s1']);
});

test('states', async () => {
  const step = (step_index: number) =>
    client.state.save({
      execution_id: 'e',
      step_name: 'n',
      step_index,
      state: { step_index },
      context: [],
    });
  assert.equal((await step(1)).is_new, true);
  await edit(client, user, 'e', 'c', 'a.txt', 'two\n');
  await step(2);
  const executions = await client.state.executions();
  assert.deepEqual(executions.map((one) => [one.execution_id, one.checkpoints]), [['e', 2]]);
  assert.deepEqual((await client.state.list('e')).map((one) => one.id), ['ckpt-e-1', 'ckpt-e-2']);
  assert.deepEqual((await client.state.show('ckpt-e-1')).state, { step_index: 1 });
  assert.deepEqual((await client.state.resume('e')).state, { step_index: 2 });
  const done = await client.state.rollback('ckpt-e-1');
  assert.deepEqual([done.success, done.state?.moved, user.read('a.txt')], [true, true, 'one\n']);
  assert.equal((await client.state.fork('ckpt-e-1', 'other')).branch, 'other');
  assert.equal((await client.state.delete('e')).deleted, true);
});

test('what is refused has a code, a kind and a hint', async () => {
  const none = await refusal(client.point.list());
  assert.deepEqual([none.code, none.kind], [-32000, 'noStore']);
  assert.match(none.hint ?? '', /takeback checkpoint/);
  await client.checkpoint.create({ label: 'start' });
  assert.equal((await refusal(client.point.rewind('nope'))).kind, 'unknownPoint');
  assert.equal((await refusal(client.checkpoint.undo())).kind, 'nothingToDo');
  assert.equal((await refusal(client.event.hook('nobody', {}))).kind, 'unknownAgent');
  const refused = await client.event.record({ event: 'step', session: 's', checkpoint: {} as never });
  assert.equal(refused.ok, false);
});

test('long and many-byte texts pass, and what is too long is refused alone', async () => {
  const text = 'ä€😀'.repeat(1_100_000);
  const recorded = await client.event.record({ event: 'prompt', session: 's', message: 'm', text });
  assert.equal(recorded.ok, true);
  user.write('a.txt', text.slice(0, 200_000));
  await edit(client, user, 's', 'c', 'a.txt', 'x');
  const calls = [
    client.checkpoint.list('s'),
    refusal(client.event.record({ event: 'prompt', session: 's', text: 'x'.repeat(65 << 20) })),
    client.status(),
  ] as const;
  const [listed, tooLarge, status] = await Promise.all(calls);
  assert.equal(listed[0]?.originalContent, text.slice(0, 200_000));
  assert.equal(tooLarge.kind, 'tooLarge');
  assert.equal(status.points, 1);
});

test('a program that does not start is an error', async () => {
  await assert.rejects(connect({ command: ['/nowhere/takeback'] }), ConnectionLost);
  await assert.rejects(connect({ program: '/nowhere/takeback' }), ConnectionLost);
  await assert.rejects(connect({ socket: '/nowhere/socket' }), ConnectionLost);
  await assert.rejects(connect({ program: '/bin/echo' }), /is no takeback/);
});
