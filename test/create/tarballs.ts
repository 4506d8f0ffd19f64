/** The tarballs of both packages, as `npm publish` would upload them. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeOnce } from '../dev/start/artifact.ts'
import { builtPackage } from '../dev/start/build.ts'
import { FILES, makeCheckout } from '../dev/start/checkout.ts'
import { ROOT } from '../harness/process.ts'

const CREATE_PACKAGE = 'packages/create-portcullis'

/** What the package contains in addition to what a checkout needs to start. */
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs', 'schemas', 'ops']

export interface Tarballs {
  /** Absolute paths. */
  readonly portcullis: string
  readonly createPortcullis: string
  /** An empty folder outside the repository. */
  readonly folder: string
  close(): Promise<void>
}

/** The tarball of the package, in the folder of {@link packedPackages}. */
export const PORTCULLIS = 'portcullis-0.1.0.tgz'

/** Returns the folder of both tarballs. They are built and packed once for all tests. No test may write to it. */
export const packedPackages = (): Promise<string> =>
  makeOnce({
    name: 'tarballs',
    inputs: [...FILES, CREATE_PACKAGE, ...DOCUMENTS],
    make: pack,
  })

/** Returns the tarballs of both packages in a new folder. */
export async function makeTarballs(): Promise<Tarballs> {
  const packed = await packedPackages()
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-create-'))
  const kept = join(folder, 'tarballs')
  await cp(packed, kept, { recursive: true })
  return {
    portcullis: join(kept, PORTCULLIS),
    createPortcullis: join(kept, 'create-portcullis-0.1.0.tgz'),
    folder,
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Packs both packages from a copy of this checkout. */
async function pack(destination: string): Promise<void> {
  const checkout = await makeCheckout()
  for (const name of [CREATE_PACKAGE, ...DOCUMENTS])
    await cp(join(ROOT, name), join(checkout.path, name), { recursive: true })
  await cp(await builtPackage(), join(checkout.path, 'dist'), { recursive: true })
  const script = [
    `npm run -s package -- ${destination}`,
    `cd ${CREATE_PACKAGE}`,
    `npm pack -s --pack-destination ${destination}`,
  ].join('\n')
  const { code, stdout, stderr } = await checkout.run(['sh', '-euc', script]).ended
  await checkout.close()
  if (code !== 0) throw new Error(`the packages cannot be packed: ${stdout}${stderr}`)
}
