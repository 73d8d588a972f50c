// Several clients on one socket, and a server that exits.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';

import { connect, ConnectionLost, type PointCreated } from '../src/index.js';
import { User } from './user.js';

let user: User;

beforeEach(() => {
  user = new User({ 'a.txt': 'one\n' });
});

afterEach(() => user.gone());

test('subscribers are notified of points made by any process', async () => {
  const { socket } = await user.serve();
  const [one, other] = await Promise.all([
    connect({ socket, workspace: user.work }),
    connect({ socket, workspace: user.work }),
  ]);
  assert.deepEqual(await one.point.subscribe(), { workspace: user.work });
  const first = once(one, 'point:created') as Promise<[PointCreated]>;
  await other.checkpoint.create({ label: 'by another client' });
  const [{ workspace, point }] = await first;
  assert.deepEqual([workspace, point.label], [user.work, 'by another client']);
  const second = once(one, 'point:created') as Promise<[PointCreated]>;
  user.run('checkpoint', 'by another process');
  assert.equal((await second)[0].point.label, 'by another process');
  assert.equal(await one.point.unsubscribe(), true);
  await Promise.all([one.close(), other.close()]);
  await assert.rejects(one.status(), ConnectionLost);
});

test('many clients at once', async () => {
  const { socket } = await user.serve();
  const connecting = Array.from({ length: 50 }, () => connect({ socket, workspace: user.work }));
  const clients = await Promise.all(connecting);
  const recording = clients.map((client, n) =>
    client.event.record({ event: 'prompt', session: `s${n}`, text: 'go' }),
  );
  const answers = await Promise.all(recording);
  assert.ok(answers.every((answer) => answer.ok));
  assert.equal((await clients[0]?.session.list({ limit: 100 }))?.length, 50);
  await Promise.all(clients.map((client) => client.close()));
});

test('a folder that is not named is the one of the client, wherever the server was started', async () => {
  const { socket, server } = await user.serve();
  const client = await connect({ socket, workspace: user.work });
  await client.checkpoint.create({ label: 'mine' });
  const nothing = { workspace: undefined } as unknown as Record<string, never>;
  assert.equal((await client.point.list(nothing))[0]?.label, 'mine');
  const here = await connect({ socket });
  await assert.rejects(here.point.list(), /is not protected/);
  await Promise.all([client.close(), here.close()]);
  server.kill();
});

test('a server that is killed ends what was asked', async () => {
  const { socket, server } = await user.serve();
  const client = await connect({ socket, workspace: user.work });
  await client.checkpoint.create();
  const closed = once(client, 'close');
  server.kill('SIGSTOP');
  const asked = client.status();
  server.kill('SIGKILL');
  await assert.rejects(asked, ConnectionLost);
  await closed;
  await assert.rejects(client.status(), ConnectionLost);
});

test('without a socket or a command the server of the user is found, or started', async () => {
  const [one, other] = await Promise.all([user.ensured(), user.ensured()]);
  const [a, b] = await Promise.all([one.server.info(), other.server.info()]);
  assert.equal(a.pid, b.pid);
  assert.notEqual(a.pid, process.pid);
  await Promise.all([one.close(), other.close()]);
  process.kill(a.pid, 'SIGTERM');
});
