/** `npm run -s keys`: generates, rotates and lists the gateway's signing keys. */
import { join } from 'node:path'
import { devVarsFile } from './dev-vars.ts'
import { generatedKeys, generateInto, keysOf, rotateIn, tableOf } from './keys/change.ts'
import { jwksFile } from './keys/key-file.ts'
import { factsOf } from './keys/key-set.ts'
import { type KeysRequest, readRequest, USAGE } from './keys/request.ts'
import { defaultPublicUrl, ROOT } from './start/settings.ts'

function requestOrExit(): KeysRequest | 'help' {
  try {
    return readRequest(process.argv.slice(2))
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`keys: ${problem}\nSee: npm run -s keys -- --help`)
    process.exit(2)
  }
}

/** Runs a command. Throws an `Error` with a message of one line if it fails. */
async function run({ command, algorithms, force, json, ...request }: KeysRequest): Promise<void> {
  const nowMs = Date.now()
  if (command === 'generate' && request.file === '-') {
    return console.log(JSON.stringify({ keys: await generatedKeys(algorithms) }))
  }
  const file =
    request.file === undefined
      ? devVarsFile(join(ROOT, '.dev.vars'), defaultPublicUrl())
      : jwksFile(request.file)
  if (command === 'list') {
    const keys = keysOf(file)
    return console.log(json ? JSON.stringify({ keys: factsOf(keys, nowMs) }) : tableOf(keys, nowMs))
  }
  const keys =
    command === 'generate'
      ? await generateInto(file, algorithms, force)
      : await rotateIn(file, algorithms[0], nowMs)
  console.log(`${tableOf(keys, nowMs)}\n\nNext: ${file.nextStep}`)
}

const request = requestOrExit()
if (request === 'help') {
  console.log(USAGE)
} else {
  try {
    await run(request)
  } catch (error) {
    console.error(`keys: ${(error as Error).message.split('\n')[0]}`)
    process.exit(1)
  }
}
