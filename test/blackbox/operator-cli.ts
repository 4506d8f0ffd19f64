import { runCli } from '../cli/command-line.ts'
import type { StackClient } from './oauth-clients.ts'

/** Runs a command of the command line against a gateway. Returns its JSON output, or undefined. */
export async function portcullis(
  url: string,
  { id, secret }: StackClient,
  args: readonly string[],
) {
  const env = {
    PORTCULLIS_URL: url,
    PORTCULLIS_CLIENT_ID: id,
    PORTCULLIS_CLIENT_SECRET: secret,
  }
  const { code, stdout, stderr } = await runCli([...args, '--json'], { env })
  if (code !== 0) throw new Error(`portcullis ${args.join(' ')}: ${code} ${stderr}`)
  return stdout === '' ? undefined : JSON.parse(stdout)
}
