/** The tarballs of both packages, as `npm publish` would upload them. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../harness/process.ts'
import { makeCheckout } from '../start/checkout.ts'

const CREATE_PACKAGE = 'packages/create-portcullis'

export interface Tarballs {
  /** Absolute paths. */
  readonly portcullis: string
  readonly createPortcullis: string
  /** An empty folder outside the repository. */
  readonly folder: string
  close(): Promise<void>
}

/** Builds and packs both packages from a copy of this checkout. */
export async function makeTarballs(): Promise<Tarballs> {
  const checkout = await makeCheckout()
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-create-'))
  const kept = join(folder, 'tarballs')
  await cp(join(ROOT, CREATE_PACKAGE), join(checkout.path, CREATE_PACKAGE), { recursive: true })
  const script = [
    'npm run -s prepare',
    `mkdir ${kept}`,
    `npm pack -s --ignore-scripts --pack-destination ${kept}`,
    `cd ${CREATE_PACKAGE}`,
    `npm pack -s --pack-destination ${kept}`,
  ].join('\n')
  const { code, stdout, stderr } = await checkout.run(['sh', '-euc', script]).ended
  await checkout.close()
  if (code !== 0) throw new Error(`the packages cannot be packed: ${stdout}${stderr}`)
  return {
    portcullis: join(kept, 'portcullis-0.1.0.tgz'),
    createPortcullis: join(kept, 'create-portcullis-0.1.0.tgz'),
    folder,
    close: () => rm(folder, { recursive: true, force: true }),
  }
}
