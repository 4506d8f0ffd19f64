/**
 * `SUBSCRIBE`, `PSUBSCRIBE` and `MONITOR` as server-sent events. Each stream has its own
 * connection, which is closed when the caller disconnects.
 *
 * @see https://upstash.com/docs/redis/features/restapi
 */
import type { ServerResponse } from 'node:http'
import type { Redis } from 'ioredis'
import type { Command } from './command.ts'
import type { Connection, WhenGone } from './connection.ts'
import { Refusal } from './refusal.ts'

/** If a caller leaves more than this unread, the stream is ended. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024

/** Sends a stream of events as the response. Throws a `Refusal` only before anything is written. */
export async function streamEvents(
  command: Command,
  connection: Connection,
  whenGone: WhenGone,
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  if (command.name !== 'MONITOR' && command.args.length === 0) {
    const name = command.name.toLowerCase()
    throw new Refusal(400, `ERR wrong number of arguments for '${name}' command`)
  }
  const connected = await connection.own()
  let redis = connected
  whenGone(() => redis.disconnect())

  function open(): void {
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
    })
    redis.once('end', () => response.end())
  }
  function write(...fields: readonly (string | Buffer)[]): void {
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy()
    else response.write(event(fields.join(',')))
  }

  if (command.name === 'MONITOR') {
    redis = await connected.monitor()
    connected.disconnect()
    open()
    write('"OK"')
    redis.on('monitor', (time: string, args: string[], source: string, database: string) => {
      const quoted = args.map((arg) => `"${arg.replaceAll('"', '\\"')}"`).join(' ')
      write(`${time} [${database} ${source}] ${quoted}`)
    })
    return
  }
  const opened = subscribe(command, redis).then(() => {
    open()
    const kind = command.name.toLowerCase()
    command.args.forEach((channel, index) => {
      write(kind, channel, String(index + 1))
    })
  })
  // A message may arrive in the same packet as the confirmation, and must be sent after it.
  redis.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    void opened.then(() => write('message', channel, message))
  })
  redis.on('pmessageBuffer', (pattern: string, channel: Buffer, message: Buffer) => {
    void opened.then(() => write('pmessage', pattern, channel, message))
  })
  await opened
}

const subscribe = ({ name, args }: Command, redis: Redis): Promise<unknown> =>
  name === 'SUBSCRIBE' ? redis.subscribe(...args) : redis.psubscribe(...args.map(String))

/** Formats one event. A line break would end it, so each line is a separate `data` field. */
const event = (text: string): string => `data: ${text.replaceAll(/\r\n|\r|\n/g, '\ndata: ')}\n\n`
