/** The unit of systemd is valid and hardened, and its command ends in time. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { isInstalled, ROOT } from '../harness/process.ts'
import { checkEnvironment } from './environment.ts'
import { instructionsOf } from './image.ts'

const DEFAULT_GRACE_MS = 10_000
const NAME = 'portcullis@.service'
/** Of ten. Node needs the network, and memory that is writable and executable. */
const MAX_EXPOSURE = 1.5

const unit = readFileSync(join(ROOT, 'ops/systemd', NAME), 'utf8')
const dockerfile = readFileSync(join(ROOT, 'ops/docker/Dockerfile'), 'utf8')
const settings = new Map(
  [...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
)
const environment = Object.fromEntries(
  [...unit.matchAll(/^Environment=(.+)$/gm)]
    .flatMap(([, list = '']) => list.split(' '))
    .map((text) => /^(\w+)=(.+)$/.exec(text)?.slice(1) as [string, string]),
)

const folder = mkdtempSync(join(tmpdir(), 'portcullis-systemd-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs `systemd-analyze` on a unit that names programs of this machine. */
function analyze(text: string, ...command: readonly string[]) {
  const file = join(folder, NAME)
  writeFileSync(file, text.replaceAll('/usr/bin/node', process.execPath))
  const { status, stdout, stderr } = spawnSync('systemd-analyze', [...command, file], {
    encoding: 'utf8',
  })
  return { status, output: stdout + stderr }
}

describe.runIf(isInstalled('systemd-analyze'))('systemd-analyze', () => {
  test('finds no mistake', () => {
    expect(analyze(unit, 'verify', '--man=no').output).toBe('')
  })

  test('finds a planted mistake', () => {
    const planted = unit.replace('ProtectSystem=strict', 'ProtectSystems=strict')
    expect(analyze(planted, 'verify', '--man=no').output).toMatch(/Unknown key .*'ProtectSystems'/)
  })

  test(`reports an exposure of at most ${MAX_EXPOSURE}`, () => {
    const threshold = `--threshold=${MAX_EXPOSURE * 10}`
    const { status, output } = analyze(unit, 'security', '--offline=yes', threshold)
    expect(status, output).toBe(0)
    const exposed = unit.replace('CapabilityBoundingSet=\n', '')
    expect(analyze(exposed, 'security', '--offline=yes', threshold).status).not.toBe(0)
  })
})

test('the command is that of the image', () => {
  const [, command = '[]'] = instructionsOf(dockerfile).find(([name]) => name === 'CMD') ?? []
  expect(settings.get('ExecStart')).toBe(`/usr/bin/${JSON.parse(command).join(' ')}`)
})

test('a reload sends the signal that loads the policy again', () => {
  expect(settings.get('ExecReload')).toBe('/bin/kill -HUP $MAINPID')
})

test('a mistake in the configuration is not started again, and a crash is', () => {
  expect(settings.get('Restart')).toBe('on-failure')
  expect(settings.get('RestartPreventExitStatus')).toBe('2')
})

test('the gateway has more time to end than its grace periods', () => {
  expect(settings.get('KillSignal')).toBe('SIGTERM')
  expect(Number(settings.get('TimeoutStopSec')) * 1_000).toBeGreaterThan(2 * DEFAULT_GRACE_MS)
})

test('the unit has no secret, and a gateway accepts its variables with those of the example', () => {
  expect(environment).toEqual({
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: '%i',
    TRUSTED_PROXIES: '127.0.0.1',
    PROXY_TARGET_HEADERS: 'x-forwarded-proto,x-forwarded-host,x-forwarded-port',
    AUDIT_DATABASE: 'sqlite:/var/lib/portcullis/audit.db',
    MALLOC_ARENA_MAX: '2',
  })
  const example = parseEnv(readFileSync(join(ROOT, 'ops/systemd/gateway.env.example'), 'utf8'))
  checkEnvironment({ ...example, ...environment, PORT: '8081' })
})

test('the instances share the user and the folder of the audit trail', () => {
  expect(settings.get('DynamicUser')).toBe('yes')
  expect(settings.get('User')).toBe('portcullis')
  expect(environment.AUDIT_DATABASE).toContain(`/var/lib/${settings.get('StateDirectory')}/`)
})
