/** Builds a Dockerfile without Docker: each stage is a folder, each step a command of this machine. */
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { cp, mkdir } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'

/** The user of a process if the tests run as root. It can read the image and change nothing. */
const NOBODY = 65_534

type Exec = readonly [string, ...string[]]

interface Stage {
  readonly name: string | undefined
  /** The root of its files. */
  readonly root: string
  readonly variables: Record<string, string>
  workdir: string
  user: string | undefined
  health: Exec | undefined
  command: Exec | undefined
}

export interface Image extends Readonly<Stage> {
  /** Starts a command, by default `CMD`, with the variables of the image and these, and no others. */
  start(
    variables: Readonly<Record<string, string>>,
    command?: Exec,
  ): ChildProcessByStdio<null, Readable, null>
}

export interface Build {
  /** The folder for the stages. Their parents must be readable for all users. */
  readonly folder: string
  readonly project: string
  /** The files of the base image, by their path in it. */
  readonly base: Readonly<Record<string, string>>
  /** Variables for `RUN`, in addition to those of this process. */
  readonly variables: Readonly<Record<string, string>>
}

/** Returns each instruction with its arguments. Comments are left out and continued lines are joined. */
export function instructionsOf(dockerfile: string): readonly (readonly [string, string])[] {
  const lines = dockerfile.replaceAll(/^#.*\n/gm, '').replaceAll(/\\\n\s*/g, '')
  return [...lines.matchAll(/^(\w+) (.+)$/gm)].map(([, name = '', text = '']) => [name, text])
}

/** Reads a command. Throws for the shell form, in which signals do not reach the command. */
function execForm(text: string): Exec {
  return JSON.parse(text)
}

/** Builds the last stage and makes its files unchangeable. Throws if a step fails or is not supported. */
export async function buildImage(dockerfile: string, build: Build): Promise<Image> {
  const stages: Stage[] = []
  for (const [name, text] of instructionsOf(dockerfile)) {
    if (name === 'FROM') stages.push(await baseOf(text, stages.length, build))
    const stage = stages.at(-1)
    if (stage !== undefined && name !== 'FROM') await step(name, text, stage, stages, build)
  }
  const image = stages.at(-1)
  if (image === undefined) throw new Error('the Dockerfile has no FROM')
  execFileSync('chmod', ['-R', 'a-w,a+rX', image.root])
  return {
    ...image,
    start(variables, command = image.command) {
      if (command === undefined) throw new Error('the Dockerfile has no CMD')
      const [file, ...args] = command
      return spawn(file, args, {
        cwd: join(image.root, image.workdir),
        env: { PATH: join(image.root, 'bin'), ...image.variables, ...variables },
        stdio: ['ignore', 'pipe', 'inherit'],
        ...(process.getuid?.() === 0 && { uid: NOBODY, gid: NOBODY }),
      })
    },
  }
}

async function baseOf(text: string, index: number, { folder, base }: Build): Promise<Stage> {
  const root = join(folder, `stage-${index}`)
  for (const [path, source] of Object.entries(base))
    await cp(source, join(root, path), { recursive: true })
  const [, name] = / AS (\w+)$/.exec(text) ?? []
  const variables = {}
  return {
    name,
    root,
    variables,
    workdir: '/',
    user: undefined,
    health: undefined,
    command: undefined,
  }
}

async function step(
  name: string,
  text: string,
  stage: Stage,
  stages: readonly Stage[],
  { project, variables }: Build,
): Promise<void> {
  const folder = join(stage.root, stage.workdir)
  switch (name) {
    case 'WORKDIR':
      stage.workdir = text
      return void (await mkdir(join(stage.root, text), { recursive: true }))
    case 'ENV':
      for (const [, key = '', value = ''] of text.matchAll(/(\w+)=(\S+)/g))
        stage.variables[key] = value
      return
    case 'COPY': {
      const [, from, list = ''] = /^(?:--from=(\w+) )?(?:--chown=\S+ )?(.+)$/.exec(text) ?? []
      const source = from === undefined ? project : stages.find(({ name }) => name === from)?.root
      if (source === undefined) throw new Error(`COPY: there is no stage ${from}`)
      const paths = list.split(' ')
      const target = paths.pop() ?? ''
      const place = join(stage.root, resolve(stage.workdir, target))
      for (const path of paths)
        await cp(join(source, path), target.endsWith('/') ? join(place, basename(path)) : place, {
          recursive: true,
          verbatimSymlinks: true,
        })
      return
    }
    case 'RUN': {
      const [file, ...args] = execForm(text)
      const PATH = `${join(stage.root, 'bin')}:${process.env.PATH}`
      execFileSync(file, args, {
        cwd: folder,
        env: { ...process.env, ...variables, PATH },
        stdio: 'pipe',
      })
      return
    }
    case 'USER':
      stage.user = text
      return
    case 'HEALTHCHECK':
      stage.health = execForm(text.replace(/^(?:--[\w-]+=\S+ +)*CMD /, ''))
      return
    case 'CMD':
      stage.command = execForm(text)
      return
    case 'EXPOSE':
      return
    default:
      throw new Error(`${name}: the tests do not support it`)
  }
}
