// The public API: connecting, and the types of calls and answers.

export { connect, type ConnectOptions } from './connect.js';
export { Client, type ClientEvents } from './client.js';
export { ConnectionLost, TakebackError, type ErrorKind } from './errors.js';
export type * from './inputs.js';
export type { Method, MethodParams, Params, Result } from './methods.js';
export { METHODS } from './types.js';
export type * from './types.js';
